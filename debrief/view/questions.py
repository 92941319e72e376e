"""The page of questions that were asked of all sessions, with their answers."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.questions.schema import answers_by_question, facets_in, questions_in
from debrief.view.templating import Page

router = APIRouter()


@router.get("/questions")
def questions(page: Page) -> Response:
    """List the questions, the newest first, each with its answer and the sessions it cites."""
    asked = questions_in(page.lake)[::-1]
    cited = {
        id_
        for question in asked
        if question.answer is not None
        for sentence in question.answer.sentences
        for id_ in sentence.sessions
    }
    return page.render(
        "questions.html",
        title="Questions",
        questions=asked,
        facets=answers_by_question(facets_in(page.lake)) if asked else {},
        titles={key: row.title for key, row in page.index.with_ids(cited).items()},
    )

"""Ask sessions a question one by one, and put what was found together into one answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from msgspec.structs import replace

from debrief.evaluation import evaluate, failure_of
from debrief.models.answer_fields import AnswerPart, Text, read_form
from debrief.models.answers import Answer, Question, ask_until_read, refuse
from debrief.models.fencing import (
    bare_words,
    defuse_line,
    fence,
    injection_signs,
    make_visible,
    marker_of,
    refuse_lifted,
)
from debrief.models.language_model import DryRunError
from debrief.models.prompting import PromptedModel
from debrief.models.subject import asking_about
from debrief.models.templates import QUESTION, QUESTION_ANSWER, load_template, render
from debrief.models.usage import ModelUsage, total
from debrief.questions.schema import CitedAnswer, Sentence
from debrief.scoring.answer_form import LONGEST_TEXT, FacetAnswer
from debrief.scoring.facets import standing_places, whole_facets
from debrief.scoring.model import AskedQuestion, Chunk, Facet
from debrief.scoring.model_scorer import Ask, part_of
from debrief.scoring.quotations import Recording
from debrief.scoring.scorer import DEFAULT
from debrief.scoring.shown_session import shown_text
from debrief.sessions.model import Session

MOST_FOUND = 300
"""Answers that are put together, of the newest sessions."""
_MOST_SENTENCES = 8
_AGAIN = "\nYour answer before this could not be used: {}. Answer again with the one JSON object."


@dataclass(frozen=True)
class SessionAsker:
    """Asks sessions one question through ``ask``, the way to a language model."""

    question: AskedQuestion
    model: str
    ask: Ask
    secret: bytes

    def facet(self, session: Session) -> Facet:
        """Return what a session answers; a failure is a row with its reason."""
        row = Facet(
            session_id=session.id,
            session_digest=session.digest,
            question_id=self.question.id,
            model=self.model,
            asked_on=datetime.now(UTC).date(),
        )
        chunks = DEFAULT.chunks_of(session)
        parts: list[tuple[Facet, ModelUsage]] = []
        failure: Exception | None = None
        for chunk in chunks:
            try:
                parts.append(self._part(session, chunk, row))
            except DryRunError as error:
                failure = error  # go on, so that all parts are counted
            except Exception as error:
                return replace(row, status="failed", failure=failure_of(error))
        if failure is not None or not chunks:
            reason = failure_of(failure) if failure is not None else "the session has no turns"
            return replace(row, status="failed", failure=reason)
        (whole,) = whole_facets([part] for part, _ in parts)
        usage = total(usage for _, usage in parts)
        return replace(whole, **usage.columns())

    def _part(self, session: Session, chunk: Chunk, row: Facet) -> tuple[Facet, ModelUsage]:
        shown = shown_text(session, chunk)
        bare = bare_words(shown)
        prompt = render(
            load_template(QUESTION),
            {
                "question": self.question.text,
                "part": part_of(chunk),
                "data": fence(shown, marker_of(self.secret, shown)),
            },
        )

        def read(answer: Answer) -> Facet:
            said = read_form(FacetAnswer, answer.text, "found")
            refuse_lifted(answer.text, [said.answer or answer.text], bare)
            if not said.found:
                return row
            places = standing_places(said, Recording(session, chunk, ""))
            if not places:
                refuse("it quotes no words that stand in the recording")
            return replace(row, found=True, answer=said.answer[:LONGEST_TEXT], places=places)

        facet, answer = ask_until_read(
            lambda reason: self.ask(
                Question(text=prompt + _AGAIN.format(reason) if reason else prompt)
            ),
            read,
            model=self.model,
            about=f"question {self.question.id}, part {chunk.index + 1} of {chunk.count} "
            f"of {session.id}",
        )
        return facet, answer.usage


def ask_sessions(
    sessions: Iterable[Session],
    asker: SessionAsker,
    stored: Mapping[str, Facet],
    *,
    concurrency: int = 1,
) -> Iterator[Facet]:
    """Yield what sessions answer, in their order; the stored answer where the session is as it was.

    Args:
        sessions: read one by one.
        asker: who asks.
        stored: answers of an earlier run, by session id.
        concurrency: sessions under way at once.
    """

    def kept(session: Session) -> Facet | None:
        facet = stored.get(session.id)
        return facet if facet is not None and facet.session_digest == session.digest else None

    return evaluate(([each] for each in sessions), kept, asker.facet, workers=concurrency)


def put_together(
    question: AskedQuestion,
    facets: Sequence[Facet],
    model: PromptedModel,
) -> CitedAnswer:
    """Return one answer of what sessions answered; without sentences where none shows anything.

    Args:
        question: that was asked.
        facets: of sessions that were read, the newest first.
        model: that is asked once.

    Raises:
        ModelError: no answer was usable.
        DebriefError: the model could not be asked.
    """
    found = [facet for facet in facets if facet.found]
    answer = CitedAnswer(
        model=model.name,
        on=datetime.now(UTC).date(),
        asked=len(facets),
        found=tuple(facet.session_id for facet in found),
    )
    if not found:
        return answer
    numbered = dict(enumerate(found[:MOST_FOUND], 1))
    lines = (
        f"{number}. {facet.answer} «{facet.places[0].quote}»" for number, facet in numbered.items()
    )
    shown = "\n".join(map(defuse_line, lines))
    with asking_about(*(facet.session_id for facet in numbered.values())):
        sentences, _ = model.read(
            render(
                load_template(QUESTION_ANSWER),
                {
                    "question": question.text,
                    "found": fence(shown, model.marker("question", question.id, shown)),
                },
            ),
            lambda text: read_sentences(text, numbered),
            about=f"for the answer to question {question.id}",
        )
    return replace(answer, sentences=tuple(sentences))


def read_sentences(text: str, numbered: Mapping[int, Facet]) -> list[Sentence]:
    """Return the sentences of an answer that cite something; one that does not falls alone.

    Raises:
        AnswerError: none is left.
    """
    sentences = []
    for said in read_form(_SentencesAnswer, text, "sentences").sentences[:_MOST_SENTENCES]:
        words = " ".join(said.text.split())
        cited = [numbered[number] for number in dict.fromkeys(said.cites) if number in numbered]
        if words and cited and make_visible(words) == words and not injection_signs([words]):
            ids = tuple(dict.fromkeys(facet.session_id for facet in cited))
            sentences.append(Sentence(text=words, sessions=ids))
    if not sentences:
        refuse("no sentence of it cites an answer")
    return sentences


class _Said(AnswerPart):
    text: Text = ""
    cites: list[int] = []


class _SentencesAnswer(AnswerPart):
    sentences: list[_Said]

"""Rubrics: what sets good sessions apart from bad ones."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.rubrics.model import RUBRICS, Rubric
from debrief.rubrics.page import rubrics_markdown
from debrief.view.templating import Page

router = APIRouter()


@router.get("/rubrics")
def rubrics(page: Page) -> Response:
    """Show the rubrics of each score name, with their effect on unseen sessions."""
    text = rubrics_markdown(list(page.lake.rows(RUBRICS, Rubric)))
    return page.render("text.html", title="Rubrics", text=text)

"""Advice: lines for a prompt, proposed by rubrics that hold."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.rubrics.model import RUBRICS, Rubric
from debrief.view.templating import Page

router = APIRouter()


@router.get("/advice")
def advice(page: Page) -> Response:
    """Show the rubrics that hold on unseen sessions."""
    rows = [row for row in page.lake.rows(RUBRICS, Rubric) if (row.held_out_low or 0) > 0]
    return page.render("advice.html", title="Advice", rubrics=rows)

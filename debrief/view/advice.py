"""Advice: lines for a file that agents read, proposed by rubrics that hold."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.rubrics.page import advice_markdown, advice_of
from debrief.view.templating import Page

router = APIRouter()


@router.get("/advice")
def advice(page: Page) -> Response:
    """Show the lines with their evidence, and what is missing for more."""
    advised = advice_of(page.lake)
    text = advice_markdown(advised)
    return page.render("advice.html", title="Advice", advised=advised, text=text)

"""The list of sessions: searched, filtered, sorted, and shareable by its address."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from debrief.view.query import SCORES, SORTS, choices_of, query_of, search
from debrief.view.templating import Page

router = APIRouter()


@router.get("/sessions")
def sessions(page: Page, request: Request) -> Response:
    """Show the sessions of all weeks that the address asks for, the worst first."""
    return page.render(
        "list.html",
        title="Sessions",
        found=search(page.index, query_of(request.query_params)),
        choices=choices_of(page.index),
        sorts=SORTS,
        scores=SCORES,
    )

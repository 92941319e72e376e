"""The list of sessions: searched, filtered, sorted, and shareable by its address."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.view.templating import Page

router = APIRouter()
_SHOWN = 50


@router.get("/sessions")
def sessions(page: Page) -> Response:
    """Show the sessions of all weeks, the worst first."""
    found = page.index.sessions(order="quality IS NULL, quality, started DESC", limit=_SHOWN)
    return page.render("sessions.html", title="Sessions", sessions=found)

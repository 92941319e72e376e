"""One session's page."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.view.templating import Page

router = APIRouter()


@router.get("/sessions/{session_id:path}")
def session(page: Page, session_id: str) -> Response:
    """Show a session turn by turn."""
    row = page.index.find(session_id)
    if row is None:
        raise InputError(session_id, "is no session of this lake", "Search the list of sessions.")
    whole = page.lake.read(SESSIONS_TABLE, row.week, Session, ("id", {session_id}))
    return page.render("session/page.html", title=row.title, row=row, session=next(whole))

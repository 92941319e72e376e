"""The first page: this week against the last, and where to look."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.view.templating import Page

router = APIRouter()
_SHOWN = 5
_WEEKS = 12


@router.get("/")
def home(page: Page) -> Response:
    """Show the newest week's worst and best sessions, and the weeks before it."""
    weeks = page.index.select(
        "SELECT week, count(*) AS sessions, avg(quality) AS quality, "
        "sum(failed != '') AS failed FROM sessions GROUP BY week ORDER BY week DESC LIMIT ?",
        (_WEEKS,),
    )
    newest = weeks[0]["week"] if weeks else ""
    scored = "week = ? AND quality IS NOT NULL"
    return page.render(
        "home.html",
        title="Home",
        weeks=weeks,
        worst=page.index.sessions(scored, (newest,), "quality", _SHOWN),
        best=page.index.sessions(scored, (newest,), "quality DESC", _SHOWN),
    )

"""Weeks: how each went, and the report of one."""

from __future__ import annotations

from fastapi import APIRouter, Response

from debrief.errors import InputError
from debrief.keys import is_week
from debrief.view.templating import Page
from debrief.weekly import page_of, report_of

router = APIRouter()


@router.get("/weeks")
def weeks(page: Page) -> Response:
    """List the weeks with sessions, the newest first."""
    rows = page.index.select(
        "SELECT week, count(*) AS sessions, avg(quality) AS quality, sum(failed != '') AS failed "
        "FROM sessions GROUP BY week ORDER BY week DESC"
    )
    return page.render("weeks.html", title="Weeks", weeks=rows)


@router.get("/weeks/{week}")
def week(page: Page, week: str) -> Response:
    """Show the report of a week; one that no run has written is made from what there is."""
    if not is_week(week):
        raise InputError(week, "is no week", "A week is named by its Monday, such as 2026-11-16.")
    stored = page.lake.read_bytes(f"reports/{week}.md")
    text = stored.decode() if stored else page_of(report_of(page.lake, week))
    return page.render("text.html", title=f"Week of {week}", text=text)

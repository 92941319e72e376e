"""Weeks: how each went, and the report of one."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from msgspec import Struct

from debrief.errors import InputError
from debrief.keys import is_week
from debrief.lake import Lake
from debrief.training.decomposition import WeeklyMove
from debrief.view.charts import line_of
from debrief.view.index import Index
from debrief.view.templating import Page
from debrief.weekly import MOVES, page_of, report_of

router = APIRouter()
_DRAWN = 26
"""Weeks of a line."""
_NARROW, _WIDE, _HEIGHT = 560, 1_180, 96
_SHOWN = 5


class WeekRow(Struct, frozen=True, kw_only=True):
    """A week in lists."""

    week: str
    sessions: int
    scored: int
    failed: int
    quality: float | None
    """Mean overall quality."""
    judges: float | None
    tokens: int
    lines: int
    """Added and removed."""
    moved: float | None = None
    """Of the quality, from the week before it that has sessions."""


def weeks_of(index: Index) -> list[WeekRow]:
    """Return the weeks with sessions, the newest first."""
    rows = index.select(
        "SELECT week, count(*) AS sessions, count(quality) AS scored, sum(failed != '') AS failed, "
        "avg(quality) AS quality, avg(judges) AS judges, sum(tokens) AS tokens, "
        "sum(lines_added + lines_removed) AS lines FROM sessions GROUP BY week ORDER BY week"
    )
    found: list[WeekRow] = []
    before: float | None = None
    for row in rows:
        quality = row["quality"]
        moved = None if quality is None or before is None else quality - before
        found.append(WeekRow(**dict(row), moved=moved))
        before = before if quality is None else quality
    return found[::-1]


def move_of(lake: Lake, week: str) -> WeeklyMove | None:
    """Return how a week's mean came about; None where there is nothing to compare it with."""
    return next((move for move in lake.read(MOVES, "all", WeeklyMove) if move.week == week), None)


def drawn(weeks: list[WeekRow], width: int = _NARROW) -> dict[str, Any]:
    """Return the last weeks as a line, for the macro ``trend``."""
    shown = weeks[:_DRAWN][::-1]
    return {"line": line_of([row.quality for row in shown], width, _HEIGHT), "line_weeks": shown}


@router.get("/weeks")
def weeks(page: Page) -> Response:
    """List the weeks with sessions, the newest first."""
    rows = weeks_of(page.index)
    return page.render("weeks.html", title="Weeks", weeks=rows, **drawn(rows, _WIDE))


@router.get("/weeks/{week}")
def week(page: Page, week: str) -> Response:
    """Show the report of a week; one that no run has written is made from what there is."""
    if not is_week(week):
        raise InputError(week, "is no week", "A week is named by its Monday, such as 2026-11-16.")
    rows = weeks_of(page.index)
    place = next((number for number, row in enumerate(rows) if row.week == week), None)
    if place is None:
        raise InputError(week, "has no sessions", "Choose one of the list of weeks.")
    stored = page.lake.read_bytes(f"reports/{week}.md")
    text = stored.decode("utf-8", "replace") if stored else page_of(report_of(page.lake, week))
    scored = "week = ? AND quality IS NOT NULL"
    return page.render(
        "week.html",
        title="Week",
        row=rows[place],
        before=rows[place + 1] if place + 1 < len(rows) else None,
        after=rows[place - 1] if place else None,
        move=move_of(page.lake, week),
        report=text.partition("\n")[2],
        worst=page.index.sessions(scored, (week,), "quality, started DESC", _SHOWN),
    )

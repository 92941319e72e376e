"""The first page: what is reviewed, recurring friction, and sessions to look at."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from fastapi import APIRouter, Response
from msgspec import Struct

from debrief.keys import week_of
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.store import UNREAD_TABLE
from debrief.view.columns import NARROW, amount_columns, verdict_columns
from debrief.view.counting import figures_by, figures_of, signals_read, verdicts_of
from debrief.view.friction import effects_by_friction, known_friction, was_looked_for
from debrief.view.index import Index
from debrief.view.prompts import without_prompts
from debrief.view.query import to_look_at
from debrief.view.templating import Page

router = APIRouter()
_DAYS, _FEWEST = 30, 5
"""How far the page looks back, and the sessions without which it looks further."""
_FRICTION, _SESSIONS = 3, 3
_GROUPS, _FAILURES = 6, 6
"""Tools and repositories of the trends, and failures that are named."""


class Recent(Struct, frozen=True, kw_only=True):
    """The days that the page is about."""

    since: date
    days: int = 0
    """Back from today; 0 where it looks further, as these hold too few sessions."""


@router.get("/")
def home(page: Page) -> Response:
    """Show the last days: what is reviewed, friction, sessions to look at, failures, trends."""
    weeks = figures_by(page.index, "week")
    if not weeks:
        return page.render("empty.html", title="Home")
    recent = recent_days(page.index, datetime.now(UTC).date())
    day = recent.since.isoformat()
    late = ("started >= ?", (day,))
    known = known_friction(page)
    first_week = week_of(datetime.combine(recent.since, time(), UTC))
    shown = [row["week"] for row in weeks if row["week"] >= first_week]
    unread = [
        row for row in page.lake.rows(UNREAD_TABLE, UnreadTranscript, shown) if not row.expected
    ]
    read = signals_read(page.index)
    is_reading = read.is_behind or page.index.progress.is_behind
    return page.render(
        "home.html",
        title="Home",
        recent=recent,
        since=recent.since,
        weeks=weeks,
        read=read,
        is_reading=is_reading,
        offer=None if is_reading else page.offer,
        verdicts=verdicts_of(page.index, *late),
        figures=figures_of(page.index, *late),
        friction=known[:_FRICTION],
        all_friction=len(known),
        effects=effects_by_friction(page),
        was_looked_for=was_looked_for(page),
        looked_at=to_look_at(page.index, *late, _SESSIONS),
        newest=page.index.sessions(f"{late[0]} AND NOT is_stub", late[1], limit=_SESSIONS),
        failures=page.index.sessions(f"{late[0]} AND failed != ''", late[1], limit=_FAILURES),
        unread=unread[:_FAILURES],
        all_unread=len(unread),
        without_prompts=0 if is_reading else without_prompts(page.index, day),
        by_tool=figures_by(page.index, "tool", *late)[:_GROUPS],
        by_repository=figures_by(page.index, "repository", *late)[:_GROUPS],
        drawings=[
            ("sessions", verdict_columns(weeks, NARROW)),
            ("tokens", amount_columns(weeks, "tokens", NARROW)),
            ("money", amount_columns(weeks, "spent_usd", NARROW)),
        ],
    )


def recent_days(index: Index, today: date) -> Recent:
    """Return from which day on the page looks: the last 30 days, or the newest weeks that hold a
    few sessions."""
    late = today - timedelta(days=_DAYS)
    count = "SELECT count(*) FROM sessions WHERE NOT is_stub AND started >= ?"
    if index.select(count, (late.isoformat(),))[0][0] >= _FEWEST:
        return Recent(since=late, days=_DAYS)
    few = "SELECT week FROM sessions WHERE NOT is_stub ORDER BY week DESC LIMIT 1 OFFSET ?"
    found = index.select(few, (_FEWEST - 1,)) or index.select("SELECT min(week) FROM sessions")
    return Recent(since=date.fromisoformat(found[0][0]))

"""The first page: recent work, recurring troubles, and sessions worth reading."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import zip_longest
from typing import Literal

from fastapi import APIRouter, Response
from msgspec import Struct

from debrief.keys import week_of
from debrief.scoring.order import LOOK_FIRST
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.store import UNREAD_TABLE
from debrief.troubles.model import Trouble
from debrief.view.columns import NARROW, amount_columns, verdict_columns
from debrief.view.counting import figures_by, figures_of, verdicts_of
from debrief.view.index import Index
from debrief.view.indexed import SessionRow
from debrief.view.prompts import without_prompts
from debrief.view.templating import Page
from debrief.view.troubles import (
    in_all,
    sorted_by_cost,
    troubles_known,
    troubles_since,
    were_searched,
    worst_of,
)

router = APIRouter()
_DAYS, _FEWEST = 30, 5
"""How far the page looks back, and the verdicts without which it looks further."""
_EACH = 3
"""Troubles, and sessions worth reading."""
_GROUPS, _FAILURES = 6, 6
"""Tools and repositories of the trends, and failures that are named."""
Why = Literal["trouble", "corrected", "first", "short", "broke_off", "verified", "newest"]
"""Why a session is worth reading. ``trouble``: its troubles cost most. ``corrected``: the person
corrected or interrupted it most. ``first``: it is the first of those to look at first. ``short``:
it is not done, or partly. ``broke_off``: it breaks off. ``verified``: the best that is done and
checked. ``newest``: nothing else is known of it."""


class Recent(Struct, frozen=True, kw_only=True):
    """The days that the page is about."""

    since: date
    days: int = 0
    """Back from today; 0 where it looks further, as these hold too few verdicts."""


class WorthReading(Struct, frozen=True, kw_only=True):
    """A session, and why it is worth reading."""

    row: SessionRow
    why: Why
    count: int = 0
    """Of a ``corrected`` one: how often."""
    trouble: Trouble | None = None
    """Of a ``trouble``: the one that cost most of it."""
    cost_usd: float | None = None
    """Of a ``trouble``: what all its troubles cost."""
    tokens: int = 0
    minutes: float | None = None


@router.get("/")
def home(page: Page) -> Response:
    """Show the last days: verdicts, troubles, sessions to read, what is not scored, trends."""
    weeks = figures_by(page.index, "week")
    if not weeks:
        return page.render("empty.html", title="Home")
    recent = recent_days(page.index, datetime.now(UTC).date())
    day = recent.since.isoformat()
    late = ("started >= ?", (day,))
    known = troubles_known(page)
    found = troubles_since(page.index, known, day)
    if len(found) < _EACH:
        shown_ids = {trouble.trouble.id for trouble in found}
        found += sorted_by_cost(in_all(trouble) for trouble in known if trouble.id not in shown_ids)
    first_week = week_of(datetime.combine(recent.since, time(), UTC))
    shown = [row["week"] for row in weeks if row["week"] >= first_week]
    unread = [
        row for row in page.lake.rows(UNREAD_TABLE, UnreadTranscript, shown) if not row.expected
    ]
    return page.render(
        "home.html",
        title="Home",
        recent=recent,
        since=recent.since,
        weeks=weeks,
        verdicts=verdicts_of(page.index, *late),
        figures=figures_of(page.index, *late),
        troubles=found[:_EACH],
        known_troubles=len(known),
        were_searched=were_searched(page),
        reading=list(worth_reading(page.index, known, day)),
        failures=page.index.sessions(f"{late[0]} AND failed != ''", late[1], limit=_FAILURES),
        unread=unread[:_FAILURES],
        all_unread=len(unread),
        without_prompts=without_prompts(page.index, day),
        by_tool=figures_by(page.index, "tool", *late)[:_GROUPS],
        by_repository=figures_by(page.index, "repository", *late)[:_GROUPS],
        drawings=[
            ("verdicts", verdict_columns(weeks, NARROW)),
            ("tokens", amount_columns(weeks, "tokens", NARROW)),
            ("money", amount_columns(weeks, "spent_usd", NARROW)),
        ],
    )


def recent_days(index: Index, today: date) -> Recent:
    """Return from which day on the page looks: the last 30 days, or the newest weeks that hold a
    few verdicts."""
    known = "SELECT {} FROM sessions WHERE verdict NOT IN ('', 'undetermined') {}"
    late = today - timedelta(days=_DAYS)
    count = known.format("count(*)", "AND started >= ?")
    if index.select(count, (late.isoformat(),))[0][0] >= _FEWEST:
        return Recent(since=late, days=_DAYS)
    few = known.format("week", f"ORDER BY week DESC LIMIT 1 OFFSET {_FEWEST - 1}")
    found = index.select(few) or index.select("SELECT min(week) FROM sessions")
    return Recent(since=date.fromisoformat(found[0][0]))


def worth_reading(index: Index, known: list[Trouble], day: str) -> Iterator[WorthReading]:
    """Yield a few sessions since a day, each for a reason of its own; one that went well is the
    last of them, where there is one."""
    taken: set[str] = set()
    well = list(_verified(index, day))
    room = _EACH - len(well)
    for of_all_kind in _of_all_kinds(index, known, day, {row.row.id for row in well}):
        if len(taken) < room and of_all_kind.row.id not in taken:
            taken.add(of_all_kind.row.id)
            yield of_all_kind
    yield from well


def _verified(index: Index, day: str) -> Iterator[WorthReading]:
    good = f"started >= ? AND verdict = 'complete_verified' AND ifnull(place, 1) >= {LOOK_FIRST}"
    order = "place IS NULL, place DESC, started DESC"
    for row in index.sessions(good, (day,), order, 1):
        yield WorthReading(row=row, why="verified")


def _of_all_kinds(
    index: Index, known: list[Trouble], day: str, without: set[str]
) -> Iterator[WorthReading]:
    """Yield sessions to read: the first for each reason, then the second, at the end the newest."""

    def found(why: Why, where: str, order: str) -> list[WorthReading]:
        rows = index.sessions(f"started >= ? AND {where}", (day,), order, _EACH + 1)
        return [WorthReading(row=row, why=why) for row in rows]

    reasons = [
        _costly(index, known, day),
        _corrected(index, day),
        found("first", f"place < {LOOK_FIRST}", "place"),
        found("short", "verdict IN ('failed', 'partial')", "verdict = 'partial', started DESC"),
        found("broke_off", "basis = 'open_end'", "started DESC"),
    ]
    chosen = [[reading for reading in reason if _is_chosen(reading, without)] for reason in reasons]
    for tier in zip_longest(*chosen):
        yield from (one for one in tier if one is not None)
    newest = found("newest", "true", "basis = 'no_work', started DESC")
    yield from (reading for reading in newest if reading.row.id not in without)


def _is_chosen(one: WorthReading, without: set[str]) -> bool:
    """Return whether there is something to read in a session that is not shown anyway."""
    return one.row.id not in without and one.row.basis != "no_work"


def _costly(index: Index, known: list[Trouble], day: str) -> list[WorthReading]:
    by_id = {trouble.id: trouble for trouble in known}
    found = worst_of(index, day, _EACH)
    rows = index.with_ids(each[0] for each in found)
    return [
        WorthReading(
            row=rows[session_id],
            why="trouble",
            trouble=by_id[trouble],
            cost_usd=cost_usd,
            tokens=tokens,
            minutes=minutes,
        )
        for session_id, cost_usd, tokens, minutes, trouble in found
        if session_id in rows and trouble in by_id
    ]


def _corrected(index: Index, day: str) -> list[WorthReading]:
    found = index.select(
        "SELECT session_id, count(*) FROM events JOIN sessions ON sessions.id = session_id "
        "WHERE sessions.started >= ? AND kind IN ('correction', 'interruption') "
        "GROUP BY session_id ORDER BY 2 DESC LIMIT ?",
        (day, _EACH),
    )
    rows = index.with_ids(each[0] for each in found)
    return [
        WorthReading(row=rows[session_id], why="corrected", count=count)
        for session_id, count in found
        if session_id in rows
    ]

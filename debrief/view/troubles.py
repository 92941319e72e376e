"""Pages of troubles: cost, evidence, the line that may stop one, and whether it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fastapi import APIRouter, Request, Response
from msgspec import Struct

from debrief.errors import InputError
from debrief.troubles.helped import OUTCOMES_SHOWN
from debrief.troubles.model import ALL, EFFECTS, KINDS_SHOWN, TROUBLES, LineEffect, Trouble
from debrief.troubles.remedies import line_for
from debrief.view.columns import WIDE, count_columns
from debrief.view.index import Index
from debrief.view.templating import Page, PageContext, environment
from debrief.view.values import refused

router = APIRouter()
environment().globals |= {"kinds_shown": KINDS_SHOWN, "outcomes_shown": OUTCOMES_SHOWN}
_MOST = 200
"""Troubles of one list."""
_SESSIONS = 8
"""How many of a trouble's sessions its page lists."""
SORTS: Mapping[str, str] = {
    "cost": "cost",
    "count": "times",
    "sessions": "sessions",
    "minutes": "minutes",
    "last_seen": "last seen",
}


class ShownTrouble(Struct, frozen=True, kw_only=True):
    """A trouble with what it came to, in all or in the days that a page is about."""

    trouble: Trouble
    line: str | None
    """For a prompt file; None where no remedy is known."""
    count: int
    sessions: int
    tokens: int
    """Input, output and cache writes."""
    cached: int
    """Tokens read from the provider's cache."""
    cost_usd: float | None
    """Of the events whose price is known; None where none is."""
    unpriced: int
    """Events whose price is not known."""
    minutes: float | None
    is_of_late: bool = False
    """All of this is of the days that a page is about."""

    @property
    def cost(self) -> tuple[float, int]:
        """Return what troubles are ordered by: money, else tokens."""
        return self.cost_usd or 0.0, self.tokens


def troubles_known(page: PageContext) -> list[Trouble]:
    """Return the troubles of the lake, those that cost most first; read again only when their
    table changed."""
    now, state = page.lake.versions(TROUBLES), page.request.app.state
    if getattr(state, "troubles", (None,))[0] != now:
        state.troubles = now, list(page.lake.read(TROUBLES, ALL, Trouble))
    known: list[Trouble] = state.troubles[1]
    return known


def were_searched(page: PageContext) -> bool:
    """Return whether a run has looked for troubles: without one, none is known, and none denied."""
    return bool(page.lake.versions(TROUBLES))


def in_all(trouble: Trouble) -> ShownTrouble:
    """Return a trouble with all that it came to."""
    usage = trouble.usage
    return ShownTrouble(
        trouble=trouble,
        line=line_for(trouble),
        count=trouble.count,
        sessions=len(trouble.sessions),
        tokens=usage.input + usage.output + usage.cache_write,
        cached=usage.cache_read,
        cost_usd=trouble.cost_usd,
        unpriced=trouble.unpriced,
        minutes=trouble.minutes,
    )


def troubles_since(index: Index, known: Iterable[Trouble], day: str) -> list[ShownTrouble]:
    """Return the troubles of the sessions since a day, with what they came to in these, those that
    cost most first."""
    by_id = {trouble.id: trouble for trouble in known}
    rows = index.select(
        "SELECT trouble, count(*), count(DISTINCT session_id), sum(events.tokens), sum(cached), "
        "sum(events.cost_usd), sum(events.cost_usd IS NULL), sum(minutes) "
        "FROM events JOIN sessions ON sessions.id = session_id "
        "WHERE sessions.started >= ? AND trouble IN (SELECT id FROM troubles) GROUP BY trouble",
        (day,),
    )
    found = [
        ShownTrouble(
            trouble=by_id[row[0]],
            line=line_for(by_id[row[0]]),
            count=row[1],
            sessions=row[2],
            tokens=row[3],
            cached=row[4],
            cost_usd=row[5],
            unpriced=row[6],
            minutes=row[7],
            is_of_late=True,
        )
        for row in rows
        if row[0] in by_id
    ]
    return sorted_by_cost(found)


def sorted_by_cost(troubles: Iterable[ShownTrouble]) -> list[ShownTrouble]:
    """Return troubles, those that cost most first."""
    return sorted(troubles, key=lambda one: one.cost, reverse=True)


@router.get("/troubles")
def troubles(page: Page, request: Request) -> Response:
    """List the troubles that the address asks for, those that cost most first."""
    asked = request.query_params
    repository, kind, sort = (asked.get(name, "") for name in ("repository", "kind", "sort"))
    if sort and sort not in SORTS:
        raise refused("sort", sort, "is no column to sort by", SORTS)
    known = troubles_known(page)
    repositories = _counted(one.repository for one in known)
    kinds = _counted(one.kind for one in known)
    if kind and kind not in KINDS_SHOWN:
        raise refused("kind", kind, "is not known", KINDS_SHOWN)
    if repository and repository not in (there := dict(repositories)):
        raise refused("repository", repository, "has no trouble", there)
    chosen = [
        in_all(one)
        for one in known
        if (not repository or one.repository == repository) and (not kind or one.kind == kind)
    ]
    chosen.sort(key=lambda one: _measure(one, sort), reverse=True)
    return page.render(
        "troubles/list.html",
        title="Troubles",
        known=len(known),
        were_searched=were_searched(page),
        found=chosen[:_MOST],
        total=len(chosen),
        repository=repository,
        kind=kind,
        sort=sort or "cost",
        sorts=SORTS,
        repositories=repositories,
        kinds=kinds,
        effects=_effects(page),
    )


def _measure(one: ShownTrouble, sort: str) -> tuple[float, ...]:
    if sort == "last_seen":
        return (one.trouble.last_seen.timestamp(),)
    return one.cost if sort in ("", "cost") else (float(getattr(one, sort) or 0),)


def _counted(values: Iterable[str]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for value in values:
        if value:
            counts[value] = counts.get(value, 0) + 1
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _effects(page: PageContext, trouble_id: str = "") -> list[LineEffect]:
    """Return what became of lines, of one trouble or of all."""
    rows = page.lake.read(EFFECTS, ALL, LineEffect)
    return [row for row in rows if not trouble_id or row.trouble_id == trouble_id]


@router.get("/troubles/{trouble_id}")
def trouble(page: Page, trouble_id: str) -> Response:
    """Show a trouble: what it took, two quotations, the line that stops it, when it happened."""
    one = next((row for row in troubles_known(page) if row.id == trouble_id), None)
    if one is None:
        raise InputError(
            trouble_id, "is no trouble of this lake", "It may be over: choose one of the list."
        )
    counts = page.index.select(
        "SELECT week, (SELECT count(*) FROM events WHERE trouble = ? AND week = sessions.week) "
        "FROM sessions WHERE repository = ? GROUP BY week ORDER BY week",
        (trouble_id, one.repository),
    )
    return page.render(
        "troubles/trouble.html",
        title=one.subject,
        one=in_all(one),
        titles={key: row.title for key, row in page.index.with_ids(_quoted(one)).items()},
        drawn=count_columns([tuple(row) for row in counts], WIDE, trouble=trouble_id),
        sessions=page.index.sessions(
            "id IN (SELECT session_id FROM events WHERE trouble = ?)",
            (trouble_id,),
            limit=_SESSIONS,
        ),
        effects=_effects(page, trouble_id),
    )


def _quoted(one: Trouble) -> set[str]:
    return {event.session_id for event in one.examples}

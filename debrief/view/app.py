"""The application: its first pages, what it refuses, and how it says that something is wrong."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from debrief.errors import DebriefError, InputError
from debrief.keys import is_week, week_of
from debrief.lake import Lake
from debrief.offline.order import LOOK_FIRST
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.scoring.verdict import VERDICT_NAMES, WORST_FIRST
from debrief.settings import Settings
from debrief.summary import CountedVerdicts, content_of, counted_verdicts
from debrief.training.decomposition import WeeklyMove
from debrief.training.manifest import stored_sets
from debrief.troubles.advising import advised_lines
from debrief.troubles.helped import shown_effect
from debrief.troubles.model import ALL, EFFECTS, TROUBLES, LineEffect, Trouble
from debrief.view import labels, prompts, session, training
from debrief.view.index import Index
from debrief.view.query import SCORES, SORTS, choices_of, query_of, search
from debrief.view.templating import Page, PageContext
from debrief.weekly import MOVES, page_of, report_of

if TYPE_CHECKING:
    from starlette.middleware.base import RequestResponseEndpoint

_POLICY = "; ".join(
    [
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in ("style-src", "script-src", "form-action", "connect-src")),
        "img-src 'self' data:",
        *(f"{kind} 'none'" for kind in ("base-uri", "frame-ancestors")),
    ]
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
_SHOWN, _MOST = 5, 6
"""How many sessions a page shows of each kind, and how many of anything else."""
_DRAWN = 26
"""Weeks of a drawing."""
_NARROW, _WIDE, _HEIGHT, _WIDEST = 560, 1_180, 96, 40
"""Pixels of the drawing's box, and of a column at most."""
_DAYS, _FEWEST = 30, 5
"""How far the first page looks back, and the verdicts without which it looks further."""

router = APIRouter()


def make_app(lake: Lake, settings: Settings) -> FastAPI:
    """Return the application that shows a lake; a ``Door`` stands before it.

    Args:
        lake: what is shown.
        settings: where the index is kept, and the address at which people reach the pages.
    """
    app = FastAPI(title="Debrief", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.lake, app.state.settings = lake, settings
    app.state.index = Index(lake, settings.home / "view")
    for pages in (router, labels.router, session.router, prompts.router, training.router):
        app.include_router(pages)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    for kind in (DebriefError, HTTPException):
        app.add_exception_handler(kind, _explained)
    app.middleware("http")(_with_headers)
    return app


def _explained(request: Request, error: Exception) -> Response:
    """Show an error that names its culprit, its reason and the next move, or what is refused."""
    if isinstance(error, HTTPException):
        status, title = error.status_code, "Refused"
        reason = "is no page here" if status == 404 else error.detail
        error = DebriefError(request.url.path, reason)
    else:
        status, title = 404 if isinstance(error, InputError) else 500, "Something is wrong"
    title = "Not found" if status == 404 else title
    return PageContext(request).render("error.html", status=status, title=title, error=error)


async def _with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    response = await call_next(request)
    for header, value in _HEADERS.items():
        response.headers.setdefault(header, value)
    return response


@router.get("/")
def home(page: Page) -> Response:
    """Show what was done of late, what to look at first, and the best."""
    weeks = _weeks(page.index)
    if not weeks:
        return page.render("empty.html", title="Home")
    since = _since(page.index, datetime.now(UTC).date())
    first_week = week_of(datetime.combine(since, time(), UTC))
    shown = [row for row in weeks if row["week"] >= first_week]
    late = ("started >= ?", (since.isoformat(),))
    verdicts = _verdicts(page.index, *late)
    failures = tuple(dict.fromkeys(content_of(page.lake, [row["week"] for row in shown]).failures))
    held = [row for row in page.lake.rows(RUBRICS, Rubric) if (row.held_out_low or 0.0) > 0.0]
    held.sort(key=lambda row: -(row.held_out_effect or 0.0))
    used = "SELECT task, fingerprint, max(started) FROM sessions GROUP BY 1, 2"
    last = {(task, prompts): started for task, prompts, started in page.index.select(used)}
    sets = [row for row in stored_sets(page.lake).sets if row.samples]
    sets.sort(
        key=lambda row: last.get((row.task, row.fingerprint.rpartition("-")[0]), ""), reverse=True
    )
    return page.render(
        "home.html",
        title="Home",
        weeks=weeks,
        since=since,
        verdicts=verdicts,
        figures=page.index.select(f"{_FIGURES} FROM sessions WHERE {late[0]}", late[1])[0],
        move=next((move for row in shown if (move := _move(page.lake, row["week"]))), None),
        **_sides(page.index, *late),
        failures=failures[:_MOST],
        failed=len(failures),
        rubrics=held[:_MOST],
        sets=sets[:_MOST],
        **_columns(weeks, _NARROW),
    )


@router.get("/sessions")
def sessions(page: Page, request: Request) -> Response:
    """Show the sessions of all weeks that the address asks for, those not done first."""
    return page.render(
        "list.html",
        title="Sessions",
        found=search(page.index, query_of(request.query_params)),
        choices=choices_of(page.index),
        sorts=SORTS,
        scores=SCORES,
    )


@router.get("/weeks")
def weeks(page: Page) -> Response:
    """List the weeks with sessions, the newest first."""
    rows = _weeks(page.index)
    return page.render(
        "weeks.html",
        title="Weeks",
        weeks=rows,
        verdict_names=VERDICT_NAMES,
        **_columns(rows, _WIDE),
    )


@router.get("/weeks/{week}")
def week(page: Page, week: str) -> Response:
    """Show the report of a week; one that no run has written is made from what there is."""
    if not is_week(week):
        raise InputError(week, "is no week", "A week is named by its Monday, such as 2026-11-16.")
    rows = _weeks(page.index)
    place = next((number for number, row in enumerate(rows) if row["week"] == week), None)
    if place is None:
        raise InputError(week, "has no sessions", "Choose one of the list of weeks.")
    stored = page.lake.read_bytes(f"reports/{week}.md")
    text = stored.decode("utf-8", "replace") if stored else page_of(report_of(page.lake, week))
    return page.render(
        "week.html",
        title="Week",
        row=rows[place],
        before=rows[place + 1] if place + 1 < len(rows) else None,
        after=rows[place - 1] if place else None,
        move=_move(page.lake, week),
        report=text.partition("\n")[2],
        verdicts=_verdicts(page.index, "week = ?", (week,)),
        figures=rows[place],
        **_sides(page.index, "week = ?", (week,)),
    )


@router.get("/advice")
def advice(page: Page) -> Response:
    """Show the lines that stop troubles, and what became of troubles with lines that are there."""
    return page.render(
        "advice.html",
        title="Lines for prompt files",
        advised=[one for one in advised_lines(page.lake.read(TROUBLES, ALL, Trouble)) if one.line],
        effects=[shown_effect(row) for row in page.lake.read(EFFECTS, ALL, LineEffect)],
    )


_FIGURES = (
    "SELECT count(*) AS sessions, sum(failed != '') AS failed, avg(quality) AS quality, "
    "count(quality) AS qualities, avg(judges) AS judges, sum(tokens) AS tokens, "
    "sum(lines_added + lines_removed) AS lines, "
    + ", ".join(f"sum(verdict = '{name}') AS {name}" for name in VERDICT_NAMES)
)


def _weeks(index: Index) -> list[dict[str, Any]]:
    """Return the weeks with sessions, the newest first, each with its figures."""
    found = index.select(f"{_FIGURES}, week FROM sessions GROUP BY week ORDER BY week DESC")
    return [dict(row) for row in found]


def _since(index: Index, today: date) -> date:
    """Return from which day on the first page looks: the last 30 days, or the newest weeks that
    hold a few verdicts."""
    known = "SELECT {} FROM sessions WHERE verdict NOT IN ('', 'cannot_tell') {}"
    late = today - timedelta(days=_DAYS)
    count = known.format("count(*)", "AND started >= ?")
    if index.select(count, (late.isoformat(),))[0][0] >= _FEWEST:
        return late
    few = known.format("week", f"ORDER BY week DESC LIMIT 1 OFFSET {_FEWEST - 1}")
    found = index.select(few) or index.select("SELECT min(week) FROM sessions")
    return date.fromisoformat(found[0][0])


def _verdicts(index: Index, where: str, values: tuple[str, ...]) -> CountedVerdicts:
    """Count the verdicts of the sessions for which an SQL expression is true."""
    rows = index.select(
        f"SELECT verdict, ground, count(*) FROM sessions WHERE {where} GROUP BY verdict, ground",
        values,
    )
    sessions = sum(row[2] for row in rows)
    return counted_verdicts(sessions, [tuple(row) for row in rows if row[0]])


def _sides(index: Index, where: str, values: tuple[str, ...]) -> dict[str, Any]:
    """Return the sessions to look at first and the best, of those that an expression is true for.

    Where none has a place in the order, those that are not done, or partly, take the first side.
    """
    ordered = bool(index.select(f"SELECT 1 FROM sessions WHERE {where} AND place >= 0", values))
    short = "verdict IN ('not_done', 'partly')", "verdict = 'partly', started DESC"
    chosen, order = (f"place < {LOOK_FIRST}", "place, started DESC") if ordered else short
    first = index.sessions(f"{where} AND {chosen}", values, order, _SHOWN)
    good = f"{where} AND verdict = 'done_verified' AND ifnull(place, 1) >= {LOOK_FIRST}"
    best = index.sessions(good, values, "place IS NULL, place DESC, started DESC", _SHOWN)
    return {"is_ordered": ordered, "first": first, "best": best}


def _move(lake: Lake, week: str) -> WeeklyMove | None:
    """Return how a week's mean came about; None where there is nothing to compare it with."""
    return next((move for move in lake.read(MOVES, "all", WeeklyMove) if move.week == week), None)


def _columns(weeks: list[dict[str, Any]], width: int) -> dict[str, Any]:
    """Return where the last weeks' verdicts are drawn as columns, for the macro ``columns``."""
    shown = weeks[:_DRAWN][::-1]
    step = min(_WIDEST, width / len(shown)) if shown else _WIDEST
    most = max((row["sessions"] for row in shown), default=1)
    pieces = []
    for number, row in enumerate(shown):
        top = float(_HEIGHT)
        for name in (*reversed(WORST_FIRST[:-1]), WORST_FIRST[-1]):
            height = round(_HEIGHT * (row[name] or 0) / most, 1)
            top = round(top - height, 1)
            if height:
                pieces.append((name, round(number * step, 1), top, round(step - 2, 1), height))
    return {"drawn": {"width": width, "height": _HEIGHT, "pieces": pieces}, "drawn_weeks": shown}

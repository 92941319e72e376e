"""The application: its first pages, what it refuses, and how it says that something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from debrief.errors import DebriefError, InputError
from debrief.keys import is_week
from debrief.lake import Lake
from debrief.rubrics.model import RUBRICS, Rubric
from debrief.rubrics.page import advice_markdown, advice_of
from debrief.settings import Settings
from debrief.summary import content_of
from debrief.training.decomposition import WeeklyMove
from debrief.training.manifest import stored_sets
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
"""Weeks of a line."""
_NARROW, _WIDE, _HEIGHT, _MARGIN = 560, 1_180, 96, 5
"""Pixels of the line's box, and those that stay free at each side of it."""

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
    """Show this week against the last, because of what, and where to look."""
    weeks = _weeks(page.index)
    if not weeks:
        return page.render("empty.html", title="Home")
    newest, scored = weeks[0]["week"], weeks[0]["scored"]
    half = -(-scored // 2)
    worst, best = (
        page.index.sessions(
            "week = ? AND quality IS NOT NULL", (newest,), f"{order}, started DESC", count
        )
        for order, count in (
            ("quality", min(_SHOWN, half)),
            ("quality DESC", min(_SHOWN, scored - half)),
        )
    )
    failures = tuple(dict.fromkeys(content_of(page.lake, [newest]).failures))
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
        move=_move(page.lake, newest),
        worst=worst,
        best=best,
        failures=failures[:_MOST],
        failed=len(failures),
        rubrics=held[:_MOST],
        sets=sets[:_MOST],
        **_line(weeks, _NARROW),
    )


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


@router.get("/weeks")
def weeks(page: Page) -> Response:
    """List the weeks with sessions, the newest first."""
    rows = _weeks(page.index)
    return page.render("weeks.html", title="Weeks", weeks=rows, **_line(rows, _WIDE))


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
        worst=page.index.sessions(
            "week = ? AND quality IS NOT NULL", (week,), "quality, started DESC", _SHOWN
        ),
    )


@router.get("/advice")
def advice(page: Page) -> Response:
    """Show lines for a file that agents read, with their evidence, and what is missing for more."""
    advised = advice_of(page.lake)
    text = advice_markdown(advised)
    return page.render("advice.html", title="Advice", advised=advised, text=text)


def _weeks(index: Index) -> list[dict[str, Any]]:
    """Return the weeks with sessions, the newest first, each with how its mean moved."""
    found: list[dict[str, Any]] = []
    before: float | None = None
    for row in index.select(
        "SELECT week, count(*) AS sessions, count(quality) AS scored, sum(failed != '') AS failed, "
        "avg(quality) AS quality, avg(judges) AS judges, sum(tokens) AS tokens, "
        "sum(lines_added + lines_removed) AS lines FROM sessions GROUP BY week ORDER BY week"
    ):
        quality = row["quality"]
        moved = None if quality is None or before is None else quality - before
        found.append({**dict(row), "moved": moved})
        before = before if quality is None else quality
    return found[::-1]


def _move(lake: Lake, week: str) -> WeeklyMove | None:
    """Return how a week's mean came about; None where there is nothing to compare it with."""
    return next((move for move in lake.read(MOVES, "all", WeeklyMove) if move.week == week), None)


def _line(weeks: list[dict[str, Any]], width: int) -> dict[str, Any]:
    """Return where the last weeks' quality is drawn as a line, for the macro ``trend``."""
    shown = weeks[:_DRAWN][::-1]
    step = (width - 2 * _MARGIN) / max(1, len(shown) - 1)
    places = [
        (
            round(_MARGIN + step * number, 1),
            round(_MARGIN + (_HEIGHT - 2 * _MARGIN) * (1 - row["quality"]), 1),
            row["quality"],
        )
        for number, row in enumerate(shown)
        if row["quality"] is not None
    ]
    points = " ".join(f"{left},{top}" for left, top, _ in places)
    line = {"width": width, "height": _HEIGHT, "points": points, "places": places}
    return {"line": line, "line_weeks": shown}

"""The application: its first pages, what it refuses, and how it says that something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from debrief.conversion import convert_lake
from debrief.errors import DebriefError, InputError
from debrief.keys import is_week
from debrief.lake import Lake
from debrief.settings import Settings
from debrief.view import following, friction, home, labels, prompts, questions, session, training
from debrief.view.columns import WIDE, verdict_columns
from debrief.view.counting import figures_by, signals_read, verdicts_of
from debrief.view.index import Index
from debrief.view.query import (
    BY_QUALITY,
    SORTS,
    check_known,
    choices_of,
    query_of,
    search,
    to_look_at,
)
from debrief.view.templating import Page, PageContext
from debrief.view.values import refused_by_form
from debrief.weekly import page_of, report_of

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
_SHOWN = 10
"""Sessions to look at of a week."""
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-cache",
}

router = APIRouter()


def make_app(lake: Lake, settings: Settings) -> FastAPI:
    """Return the application that shows a lake; a ``Door`` stands before it.

    Args:
        lake: what is shown.
        settings: where the index is kept, and the address at which people reach the pages.
    """
    convert_lake(lake)
    app = FastAPI(title="Debrief", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.lake, app.state.settings = lake, settings
    app.state.index = Index(lake, settings.home / "view", settings.prices)
    rooms = (following, friction, home, labels, prompts, questions, session, training)
    for pages in (router, *(room.router for room in rooms)):
        app.include_router(pages)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    for kind in (DebriefError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _explained)
    app.middleware("http")(_with_headers)
    return app


def _explained(request: Request, error: Exception) -> Response:
    """Show an error that names its culprit, its reason and the next move, or what is refused."""
    if isinstance(error, RequestValidationError):
        error = refused_by_form(error)
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


@router.get("/sessions")
def sessions(page: Page, request: Request) -> Response:
    """Show the sessions of all weeks that the address asks for, those to look at first."""
    query, certified = query_of(request.query_params), page.certified
    check_known(page.index, query, certified)
    return page.render(
        "list.html",
        title="Sessions",
        found=search(page.index, query, certified),
        choices=choices_of(page.index),
        sorts={**SORTS, **(BY_QUALITY if certified else {})},
        read=signals_read(page.index),
    )


@router.get("/weeks")
def weeks(page: Page) -> Response:
    """List the weeks with sessions, the newest first."""
    rows = figures_by(page.index, "week")
    return page.render(
        "weeks.html",
        title="Weeks",
        weeks=rows,
        drawn=verdict_columns(rows, WIDE),
    )


@router.get("/weeks/{week}")
def week(page: Page, week: str) -> Response:
    """Show the report of a week; one that no run has written is made from what there is."""
    if not is_week(week):
        raise InputError(week, "is no week", "A week is named by its Monday, such as 2026-11-16.")
    rows = figures_by(page.index, "week")
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
        report=text.partition("\n")[2],
        verdicts=verdicts_of(page.index, "week = ?", (week,)),
        figures=rows[place],
        looked_at=to_look_at(page.index, "week = ?", (week,), _SHOWN),
    )

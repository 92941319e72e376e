"""The application: its pages, what it refuses, and how it says that something is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fastapi import FastAPI, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from debrief.errors import DebriefError, InputError
from debrief.lake import Lake
from debrief.settings import Settings
from debrief.view import (
    advice,
    home,
    labels,
    prompts,
    rubrics,
    session,
    sessions,
    training,
    weeks,
)
from debrief.view.index import Index
from debrief.view.templating import PageContext

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
_LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE = frozenset({"GET", "HEAD"})


def make_app(lake: Lake, settings: Settings) -> FastAPI:
    """Return the application that shows a lake.

    Args:
        lake: what is shown.
        settings: where the index is kept, and the address at which people reach the pages.
    """
    app = FastAPI(title="Debrief", docs_url=None, redoc_url=None, openapi_url=None)
    app.state.lake, app.state.settings = lake, settings
    app.state.index = Index(lake, settings.home / "view")
    for module in (home, sessions, labels, session, prompts, rubrics, weeks, training, advice):
        app.include_router(module.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"))
    app.add_exception_handler(DebriefError, _explained)
    app.add_exception_handler(HTTPException, _refused)
    app.add_middleware(_Doorkeeper, hosts=_LOCAL | {_name_of(settings.view_url)})
    return app


def _explained(request: Request, error: Exception) -> Response:
    """Show an error that names its culprit, its reason and the next move."""
    assert isinstance(error, DebriefError)
    status = 404 if isinstance(error, InputError) else 500
    return PageContext(request).render(
        "error.html",
        status=status,
        title="Not found" if status == 404 else "Something is wrong",
        culprit=error.culprit,
        reason=error.reason,
        next_move=error.next_move,
    )


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PageContext(request).render(
        "error.html",
        status=error.status_code,
        title="Not found" if error.status_code == 404 else "Refused",
        culprit=request.url.path,
        reason="is no page here" if error.status_code == 404 else error.detail,
        next_move="",
    )


class _Doorkeeper:
    """Answers only who asks for this host, lets no other site post, and adds the headers.

    A page elsewhere can have its own name resolve to 127.0.0.1, and would then read sessions as
    its own: a request by a name that is not ours is refused.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str | None]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if (name := _name_of(f"//{host}")) is None or name not in self._hosts:
            reason = f"{host!r} is not the name of these pages; DEBRIEF_VIEW_URL can name it.\n"
            refusal = PlainTextResponse(reason, 421)
            await refusal(scope, receive, send)
            return
        if scope["method"] not in _SAFE and not _is_own(headers, host):
            refusal = PlainTextResponse("Only these pages themselves may post.\n", 403)
            await refusal(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    added.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _name_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_own(headers: Headers, host: str) -> bool:
    """Return whether a post comes from a page of ours, by what every browser says of itself."""
    if site := headers.get("sec-fetch-site"):
        return site in ("same-origin", "none")
    return urlsplit(headers.get("origin", "")).netloc == host

"""Server-sent events by which open pages follow what has been read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from msgspec import Struct, json
from msgspec.structs import replace
from starlette.concurrency import run_in_threadpool

from debrief.keys import digest_of
from debrief.view.index import Index
from debrief.view.indexed import SessionRow

router = APIRouter()
_STEP = 0.25
"""Seconds between two looks at what is being read."""
_CALM, _CALM_ELSEWHERE = 3.0, 30.0
"""Seconds between two looks at a lake that is all read: in a folder, and in a store that counts
requests."""
_SIGN_OF_LIFE = 15.0
"""Seconds after which a proxy might take silence for the end."""
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class _State(Struct, frozen=True):
    changes: int
    """Since the pages were started; another number than before: something was read."""
    done: int
    weeks: int
    is_behind: bool
    about: str = ""
    """Of one session, a digest of what lists show of it: another one when it went on."""


def about(row: SessionRow | None) -> str:
    """Return a digest of what lists show of a session; empty without one."""
    return digest_of(row)[:12] if row is not None else ""


@router.get("/progress")
async def progress(request: Request, session: str = "") -> Response:
    """Send what has been read whenever that changes, until the page or the server is gone.

    Args:
        request: of the page.
        session: whose page it is; empty for a page that lists sessions.
    """
    calm = _calm(request.app.state.lake.url)
    states = _states(request.app.state.index, request, calm, session)
    return StreamingResponse(states, media_type="text/event-stream", headers=_HEADERS)


def _calm(lake: str) -> float:
    return _CALM_ELSEWHERE if "://" in lake else _CALM


async def _states(
    index: Index, request: Request, calm: float, session: str
) -> AsyncIterator[bytes]:
    is_ending: Callable[[], bool] = getattr(request.state, "is_ending", bool)
    last: _State | None = None
    said, looked = 0.0, 0.0
    while not (is_ending() or await request.is_disconnected()):
        now = time.monotonic()
        if index.progress.is_behind or now - looked >= calm:
            await run_in_threadpool(index.follow, 0.0)
            looked = now
        progress = index.progress
        state = _State(index.changes, progress.done, progress.weeks, progress.is_behind)
        if session and (last is None or last.changes != state.changes):
            rows = await run_in_threadpool(index.with_ids, [session])
            state = replace(state, about=about(rows.get(session)))
        elif session and last is not None:
            state = replace(state, about=last.about)
        if state != last:
            yield b"data: " + json.encode(state) + b"\n\n"
            last, said = state, now
        elif now - said >= _SIGN_OF_LIFE:
            yield b": still here\n\n"
            said = now
        await asyncio.sleep(_STEP)

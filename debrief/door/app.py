"""The ASGI application that checks a request and passes it to the pages or to Dagster's UI."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from debrief.door.people import Person, Role, person_of
from debrief.door.refusal import Refusal
from debrief.door.requests import SAFE, own_hosts, refusal_of
from debrief.errors import DebriefError
from debrief.lake import Lake
from debrief.settings import DAGSTER_PATH, Settings
from debrief.state import AuditEntry, open_state

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEALTH = "/health"
"""Answers anybody whether the process is there and can read its lake, and says nothing else."""
_HEALTH_SECONDS = 10.0
"""For which what was found of the lake holds."""
HELD_PATH = "/held"
"""Releases what may hold a secret into training sets."""
_HEADERS = {
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
}
_NO_DAGSTER = "Dagster's UI is not part of this: `debrief ui` starts it.\n"
_log = logging.getLogger("debrief.door")


class Door:
    """Lets through what our own pages and people ask, and writes down who changed what.

    What it found out is in the request's state: ``person``, and ``dagster``, whether the UI is
    there. A page that changes something says what in ``change``.

    Args:
        pages: the application at ``/``.
        settings: the names, the proxies, the roles, and where changes are written down.
        dagster: the application at ``/dagster``, with that prefix in its own paths.
        lake: that the pages show; without one, health says nothing of it.
    """

    def __init__(
        self,
        pages: ASGIApp,
        settings: Settings,
        dagster: ASGIApp | None = None,
        lake: Lake | None = None,
    ) -> None:
        self._pages = pages
        self._lake = lake
        self._is_healthy, self._health_at = True, float("-inf")
        self._reads_lake = threading.Lock()
        self._settings = settings
        self._dagster = dagster
        self._hosts = own_hosts(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        path, method = scope["path"], scope.get("method", "")
        if path == HEALTH and method in SAFE:
            said, status = await run_in_threadpool(self._health)
            await PlainTextResponse(said, status)(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_graphql = path.rstrip("/") == f"{DAGSTER_PATH}/graphql" and scope["type"] == "http"
        person: Person | Refusal | None = refusal_of(
            scope["type"], method, headers, self._hosts, is_graphql=is_graphql
        )
        if person is None:
            person = person_of(headers, scope.get("client"), scope.get("server"), self._settings)
        is_dagsters = path == DAGSTER_PATH or path.startswith(f"{DAGSTER_PATH}/")
        if isinstance(person, Person):
            # Of GraphQL, Dagster itself refuses what changes something to who may only read.
            needed: Role = "read"
            if not is_graphql and method not in ("", *SAFE):
                needed = "run" if is_dagsters or path == HELD_PATH else "label"
            if not person.may(needed):
                person = _not_allowed(person, needed)
        if isinstance(person, Refusal):
            await _refuse(person, scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state.update(person=person, dagster=self._dagster is not None)
        app = self._pages
        if is_dagsters:
            app = self._dagster or PlainTextResponse(_NO_DAGSTER, 404)
        status = await _answered(app, scope, receive, send)
        change = state.get("change", "" if is_graphql else f"{method} {path}")
        if method and method not in SAFE and change and status < 400:
            await run_in_threadpool(self._write_down, AuditEntry(person.name, person.role, change))

    def _health(self) -> tuple[str, int]:
        """Return what health says, and its status.

        Anybody may ask, so the lake is read now and then, by one request at a time.
        """
        is_due = time.monotonic() - self._health_at > _HEALTH_SECONDS
        if self._lake is not None and is_due and self._reads_lake.acquire(blocking=False):
            try:
                self._lake.partitions("raw_sessions")
                self._is_healthy = True
            except DebriefError as error:
                _log.error("health: %s", error)
                self._is_healthy = False
            finally:
                self._health_at = time.monotonic()
                self._reads_lake.release()
        return ("ok\n", 200) if self._is_healthy else ("the lake cannot be read\n", 503)

    def _write_down(self, change: AuditEntry) -> None:
        try:
            open_state(self._settings).record(change)
        except DebriefError as error:
            _log.error("a change by %s was not written down: %s", change.person, error)


async def _answered(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> int:
    """Have an application answer; return the status of its answer."""
    status = 0

    async def sending(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    await app(scope, receive, sending)
    return status


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008, "reason": ""})
        return
    await PlainTextResponse(f"{refusal.reason}\n", refusal.status)(scope, receive, send)


def _not_allowed(person: Person, needed: str) -> Refusal:
    if not person.name:
        return Refusal(
            403,
            "Nobody is logged in, so nothing can be changed: put a login proxy in front, and name "
            "its header in DEBRIEF_IDENTITY_HEADER.",
        )
    return Refusal(
        403, f"{person.name} has the role {person.role!r}; this takes {needed!r} (DEBRIEF_ROLES)."
    )

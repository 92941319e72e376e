"""Who may ask, what a query may select, and the checks of a record before it is stored."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Literal
from uuid import UUID

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response
from fastapi.security import HTTPBearer
from msgspec import Struct
from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    AuthenticationError,
    SimpleUser,
)
from starlette.requests import HTTPConnection

from debrief.errors import DebriefError
from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import Contract, TaskId, reading
from debrief.recorder.encoding import canonical, decode_record, encode_record
from debrief.recorder.exporting import Form
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.service.problems import RefusedError, refuse
from debrief.recorder.storage.rows import (
    NewRow,
    Scope,
    SessionFilter,
    Token,
    UnfitError,
    Upload,
    moment_of,
)
from debrief.redaction import Redactor

_Text = Annotated[
    str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_Cursor = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:=-]+$")
]
_QueryTime = Annotated[AwareDatetime, BeforeValidator(moment_of)]
_Digits = reading("^[0-9]{1,10}$", int)
"""Pydantic would take +5, 1_0 and the digits of other scripts as well."""
_PageSize = Annotated[int, Field(ge=1, le=500), _Digits]


class _Query(Contract):
    """A query. Names that it does not know are refused: a misspelt filter would filter nothing."""

    # Built at once: FastAPI silences a warning of pydantic's while it builds a query.
    model_config = ConfigDict(validate_by_name=False, strict=False, defer_build=False)
    cursor: _Cursor | None = None
    """From an earlier answer: continues where that ended."""


class _SessionFilterQuery(_Query):
    task_id: TaskId | None = None
    """Of this task."""
    since: _QueryTime | None = None
    """Stopped then or later: a day, which begins in UTC, or a time, as 2026-01-31T00:00:00Z."""
    until: _QueryTime | None = None
    """Stopped before then, as of ``since``."""
    status: Literal["any", "draft", "ready"] = "any"
    """Of this status."""
    repo_name: _Text | None = None
    """Of this repository."""

    @property
    def filters(self) -> SessionFilter:
        """Which sessions are selected."""
        names = {"task_id", "since", "until", "repo_name"}
        status = None if self.status == "any" else self.status
        return SessionFilter(**self.model_dump(include=names), status=status)


class SessionQuery(_SessionFilterQuery):
    """Of ``GET /sessions``."""

    limit: _PageSize = 100
    """How many at most."""


class ExportQuery(_SessionFilterQuery):
    """Of ``GET /export.jsonl``."""

    format: Form = "record"
    """record: as it is stored. messages: chat messages with their tools, as trainers read them."""
    limit: Annotated[int, Field(ge=1, le=2**31 - 1), _Digits] | None = None
    """How many sessions at most."""
    manifest: bool = False
    """End with a line that counts what was sent, and names the rest."""


class BenchmarkQuery(_Query):
    """Of ``GET /benchmarks``."""

    adapter: _Text | None = None
    """Of this adapter."""
    version: _Text | None = None
    """Of this version."""
    metric: _Text | None = None
    """Of this metric."""
    task_id: TaskId | None = None
    """Of this task."""
    session_id: UUID | None = None
    """Measured on this session."""
    limit: _PageSize = 100
    """How many at most."""


_SECRET = re.compile(r"[A-Za-z0-9_.~+/=-]{16,256}")


class RateLimit:
    """A bucket of requests for each token, filled at a steady rate.

    Args:
        rate: requests a second, over time.
        burst: requests at once.
        now: a clock.
    """

    def __init__(self, rate: float, burst: int, now: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._now = now
        self._levels: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def take(self, name: str) -> int:
        """Count a request; return 0, or in how many whole seconds it is allowed."""
        with self._lock:
            now = self._now()
            level, then = self._levels.get(name, (self._burst, now))
            level = min(self._burst, level + (now - then) * self._rate)
            allowed = level >= 1
            self._levels[name] = (level - 1 if allowed else level, now)
        return 0 if allowed else max(1, math.ceil((1 - level) / self._rate))


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="Made with `debrief tokens create NAME --scope read --scope write --scope export`.",
)


class BearerTokens(AuthenticationBackend):
    """Refuses a request without a token before anything of its body is read.

    Args:
        open_paths: that anybody may ask for.
    """

    def __init__(self, open_paths: Collection[str]) -> None:
        self._open_paths = open_paths

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, SimpleUser] | None:
        """Return a token's scopes and name; None where none is needed."""
        if conn.url.path in self._open_paths:
            return None
        try:
            token = await run_sync(_token_of, conn)
        except DebriefError as error:
            raise AuthenticationError from error
        return AuthCredentials(token.scopes), SimpleUser(token.name)


def _token_of(conn: HTTPConnection) -> Token:
    service, headers = conn.app.state.service, conn.headers.getlist("authorization")
    kind, _, secret = headers[0].partition(" ") if len(headers) == 1 else ("", "", "")
    is_secret = kind.lower() == "bearer" and _SECRET.fullmatch(secret.strip())
    token: Token | None = service.store.find_token(secret.strip()) if is_secret else None
    if token is None:
        raise RefusedError(
            401,
            "token",
            "is not one of this service's, or was revoked" if headers else "is missing",
            "Send: Authorization: Bearer TOKEN. Make one with: debrief tokens create NAME",
            {"WWW-Authenticate": 'Bearer realm="debrief"'},
        )
    if seconds := service.rate_limit.take(token.name):
        raise RefusedError(
            429,
            "token",
            "has sent too many requests",
            f"Try again in {seconds} seconds.",
            {"Retry-After": str(seconds)},
        )
    return token


def refuse_token(conn: HTTPConnection, error: AuthenticationError) -> Response:
    """Answer a request whose token does not do."""
    assert isinstance(error.__cause__, DebriefError)
    return refuse(conn, error.__cause__)


def needs(scope: Scope) -> Any:
    """Return a dependency that refuses a request whose token lacks a scope."""

    def check_scope(request: Request, _: Annotated[object, Depends(_bearer)]) -> None:
        if scope not in request.auth.scopes:
            move = f"Make one with: debrief tokens create NAME --scope {scope}"
            raise RefusedError(403, "token", f"has no {scope} scope", move)

    return Depends(check_scope)


_REPEATED = ("task_id", "repo_name", "repo_remote", "branch", "base_ref")


class Ingest(Struct, frozen=True):
    """Checks uploaded records."""

    redactor: Redactor
    """Replaces secrets that a recorder let through."""
    rule: ReadyRule
    """When a record may be marked ready."""
    programs: Collection[str] = ()
    """That records may have run; all that their own rules name, if there is none."""

    def check(self, upload: Upload) -> NewRow:
        """Return the row that an upload makes; always a draft.

        Raises:
            UnfitError: it contradicts itself, or contains a secret that cannot be replaced.
        """
        if reasons := contradictions(upload) + problems_of(upload.record):
            raise UnfitError("record", reasons, "Record the session again, or correct its record.")
        ran = {command.cmd for command in upload.record.meta.commands}
        if self.programs and (refused := sorted(ran.difference(self.programs))):
            reasons = [
                f"the program {program} is not one that this service takes" for program in refused
            ]
            raise UnfitError("record", reasons, "Ask who runs the service.")
        record = canonical(upload.record)
        sent = text = encode_record(record, only_set=True)
        if clean := scrubbed(record, self.redactor):
            text, record = clean.text, clean.record
            if problems_of(decode_record(text)):
                raise UnfitError(
                    "record",
                    [f"holds a secret ({kind}) that cannot be replaced" for kind in clean.kinds],
                    "Take it out of the files, change it wherever it is used, and record again.",
                )
        reasons = readiness(record, self.rule)
        if text is not sent:
            kinds = ", ".join(record.meta.redactions.kinds)
            reasons.insert(0, f"the service replaced secrets that its recorder left in ({kinds})")
        return NewRow(
            **upload.model_dump(exclude={"record"}),
            sha256=sha256(sent).hexdigest(),
            text=text,
            verified=record.meta.verified,
            files=len(record.meta.changes),
            validated=is_validated(record),
            redactions=record.meta.redactions.count,
            not_ready=reasons,
        )


def contradictions(upload: Upload) -> list[str]:
    """Return where an upload and its record's ``meta`` differ."""
    meta = upload.record.meta
    reasons = [
        f"{to_camel(name)}: is not what record.meta says"
        for name in _REPEATED
        if getattr(upload, name) != getattr(meta, name)
    ]
    if upload.id != meta.session_id:
        reasons.append("id: is not record.meta.sessionId")
    if upload.created_at != meta.stopped_at:
        reasons.append("createdAt: is not record.meta.stoppedAt")
    return reasons

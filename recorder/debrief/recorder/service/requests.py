"""Bodies and queries, read strictly: what does not fit is refused and never guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from email.message import EmailMessage
from hashlib import sha256
from threading import Lock
from time import monotonic
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import unquote_to_bytes
from uuid import UUID

from fastapi import Depends, Request
from fastapi.security import HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials
from msgspec import Struct
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from pydantic.alias_generators import to_camel
from starlette.requests import ClientDisconnect

from debrief.recorder.checks import ReadyRule, is_validated, problems_of, readiness
from debrief.recorder.contracts import Contract, TaskId, reading
from debrief.recorder.encoding import (
    MAX_BYTES,
    SCHEMA,
    canonical,
    decode,
    decode_record,
    encode_record,
)
from debrief.recorder.exporting import Form
from debrief.recorder.scrubbing import scrubbed
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.storage.rows import (
    NewRow,
    Scope,
    SessionFilter,
    UnfitError,
    Upload,
    moment_of,
)
from debrief.redaction import Redactor

_SMALL_BODY = 65_536
"""Bytes of a body that is not a record."""
Model = TypeVar("Model", bound=BaseModel)


async def record_body(request: Request) -> bytes:
    """Return the body of a request that may contain a record."""
    return await _read(request, MAX_BYTES)


def json_body(model: type[Model]) -> Any:
    """Return a dependency that reads a small body as a model."""

    async def parse(request: Request) -> Model:
        return decode(model, await _read(request, _SMALL_BODY), "body", SCHEMA)

    return Depends(parse)


async def _read(request: Request, limit: int) -> bytes:
    _check_headers(request)
    too_long = RefusedError(413, "body", f"is over {limit:,} bytes", "Record a smaller change.")
    if int(request.headers.get("content-length", "0")) > limit:
        raise too_long
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise too_long
    except ClientDisconnect:
        raise RefusedError(400, "body", "ended before it was whole", "Send it again.") from None
    return bytes(body)


def _check_headers(request: Request) -> None:
    codings = request.headers.getlist("content-encoding")
    if any(coding.strip().lower() not in ("", "identity") for coding in codings):
        headers = {"Accept-Encoding": "identity"}
        raise RefusedError(
            415, "Content-Encoding", "is not taken", "Send the body as it is.", headers
        )
    kinds = request.headers.getlist("content-type")
    header = EmailMessage()
    header["Content-Type"] = kinds[0] if len(kinds) == 1 else ""
    is_utf8 = header.get_content_charset("utf-8") == "utf-8"
    if header.get_content_type() != "application/json" or not is_utf8:
        raise RefusedError(
            415,
            "Content-Type",
            "is not application/json in UTF-8",
            "Send: Content-Type: application/json",
        )


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
    model_config = ConfigDict(validate_by_name=False, defer_build=False)
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
_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="Made with `debrief tokens create NAME --scope read --scope write --scope export`.",
)


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


def needs(scope: Scope) -> Any:
    """Return a dependency that refuses a request without a token of a scope.

    It comes before anything else of the request is read, so that a stranger learns nothing from
    how a body or a query value is answered.
    """

    def check_token(
        request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]
    ) -> None:
        service = request.app.state.service
        headers = request.headers.getlist("authorization")
        secret = given.credentials.strip() if given and len(headers) == 1 else ""
        token = service.store.find_token(secret) if _SECRET.fullmatch(secret) else None
        if token is None:
            raise RefusedError(
                401,
                "token",
                "is not one of this service's, or was revoked" if headers else "is missing",
                "Send: Authorization: Bearer TOKEN. Make one with: debrief tokens create NAME",
                {"WWW-Authenticate": 'Bearer realm="debrief"'},
            )
        request.state.token_name = token.name
        if scope not in token.scopes:
            move = f"Make one with: debrief tokens create NAME --scope {scope}"
            raise RefusedError(403, "token", f"has no {scope} scope", move)
        seconds = service.rate_limit.take(token.name)
        if seconds:
            raise RefusedError(
                429,
                "token",
                "has sent too many requests",
                f"Try again in {seconds} seconds.",
                {"Retry-After": str(seconds)},
            )
        _check_query(request)

    return Depends(check_token)


def _check_query(request: Request) -> None:
    """Refuse a query that could be read in two ways."""
    try:
        unquote_to_bytes(request.scope["query_string"]).decode()
    except UnicodeDecodeError:
        raise RefusedError(422, "query", "is not UTF-8", "Escape its values as UTF-8.") from None
    names = [name for name, _ in request.query_params.multi_items()]
    repeated = [f"{name}: is given twice" for name in set(names) if names.count(name) > 1]
    if repeated:
        raise RefusedError(422, "query", sorted(repeated), "Give each once.")


_REPEATED = ("task_id", "repo_name", "repo_remote", "branch", "base_ref")


class Ingest(Struct, frozen=True):
    """Checks uploaded records."""

    redactor: Redactor
    """Replaces secrets that a recorder let through."""
    rule: ReadyRule
    """When a record may be marked ready."""
    programs: Collection[str] = ()
    """That records may have run; all that their own rules name, if there is none."""

    def check(self, body: bytes) -> NewRow:
        """Return the row that a request's body makes; always a draft.

        Raises:
            MalformedError: the body cannot be read.
            UnfitError: it is not of the contract, contradicts itself, or contains a secret that
                cannot be replaced.
        """
        upload = decode(Upload, body, "body", next_move=SCHEMA)
        if reasons := contradictions(upload) + problems_of(upload.record):
            raise UnfitError("record", reasons, "Record the session again, or correct its record.")
        ran = {command.cmd for command in upload.record.meta.commands}
        if self.programs and (refused := sorted(ran.difference(self.programs))):
            reasons = [
                f"the program {program} is not one that this service takes" for program in refused
            ]
            raise UnfitError("record", reasons, "Ask who runs the service.")
        record = canonical(upload.record)
        sent = text = encode_record(record)
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

"""Bodies and queries, read strictly: what does not fit is refused and never guessed."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.message import EmailMessage
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from fastapi import Depends, Request
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)
from starlette.requests import ClientDisconnect

from debrief.recorder.contracts import Contract, TaskId
from debrief.recorder.encoding import MAX_BYTES, SCHEMA, decode
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.storage.rows import BenchmarkFilter, SessionFilter
from debrief.training.model import Split

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
    if len(kinds) != 1 or not _is_json(kinds[0]):
        raise RefusedError(
            415,
            "Content-Type",
            "is not application/json in UTF-8",
            "Send: Content-Type: application/json",
        )


def _is_json(kind: str) -> bool:
    header = EmailMessage()
    header["Content-Type"] = kind
    is_utf8 = header.get_content_charset("utf-8") == "utf-8"
    return header.get_content_type() == "application/json" and is_utf8


def _check_moment(value: object) -> object:
    """Refuse numbers, which pydantic would read as seconds since 1970."""
    if isinstance(value, str) and not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", value):
        raise ValueError("is not a time such as 2026-01-31T00:00:00Z")
    if isinstance(value, str) and re.search(r":[0-9.]+ [0-9]{2}:?[0-9]{2}$", value):
        raise ValueError("has a space for the + of its zone: write %2B")
    return value


def _check_digits(value: object) -> object:
    """Refuse what pydantic would read as a number as well: +5, 1_0, digits of other scripts."""
    if isinstance(value, str) and not re.fullmatch("[0-9]{1,10}", value):
        raise ValueError("is not a number in plain digits")
    return value


def _to_utc(moment: datetime) -> datetime:
    if not 1 < moment.year < 9999:
        raise ValueError("is out of range: years 2 to 9998")
    return moment.astimezone(UTC)


_Text = Annotated[
    str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\x00-\x1f\x7f]+$")
]
_Cursor = Annotated[
    str, StringConstraints(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9_.:=-]+$")
]
_QueryTime = Annotated[AwareDatetime, BeforeValidator(_check_moment), AfterValidator(_to_utc)]
_Digits = BeforeValidator(_check_digits)
_PageSize = Annotated[int, Field(ge=1, le=500), _Digits]


class _Query(Contract):
    """A query. Names that it does not know are refused: a misspelt filter would filter nothing."""

    model_config = ConfigDict(validate_by_name=False)
    cursor: _Cursor | None = None
    """From an earlier answer: continues where that ended."""


class _SessionFilterQuery(_Query):
    task_id: TaskId | None = None
    """Of this task."""
    since: _QueryTime | None = None
    """Stopped then or later, as 2026-01-31T00:00:00Z."""
    until: _QueryTime | None = None
    """Stopped before then."""
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

    format: Literal["record", "messages", "trl", "openai", "sharegpt"] = "record"
    """record: as it is stored. messages, trl, openai, sharegpt: as trainers read it."""
    split: Split | None = None
    """Only this side of the train/eval split."""
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

    @property
    def filters(self) -> BenchmarkFilter:
        """Which benchmarks are selected."""
        return BenchmarkFilter(**self.model_dump(exclude={"cursor", "limit"}))

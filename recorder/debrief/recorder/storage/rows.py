"""What the API and the store take and give, beside records, and what can go wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Generic, Literal, TypeVar
from uuid import UUID

from msgspec import Struct
from pydantic import AfterValidator, Field, FiniteFloat, JsonValue, PrivateAttr

from debrief.errors import DebriefError, InputError
from debrief.recorder.contracts import (
    MAX_INTEGER,
    Branch,
    CommitId,
    Contract,
    Identity,
    Label,
    Moment,
    Name,
    Record,
    Remote,
    Status,
    TaskId,
)


class NewTask(Contract, defer_build=False):
    """A bucket of work, as it is made."""

    id: TaskId
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=10_000)] | None = None


class Task(NewTask):
    """A bucket of work."""

    created_at: datetime


class Upload(Contract, defer_build=False):
    """The body of ``POST /sessions``. What is repeated in ``record.meta`` has to agree with it."""

    id: Identity
    task_id: TaskId
    repo_name: Name
    repo_remote: Remote | None = None
    branch: Branch | None = None
    base_ref: CommitId
    created_at: Moment
    """When the session was stopped."""
    record: Record
    _missing: tuple[str, ...] = PrivateAttr(())

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that the client left out, as ``record.meta.finalTree``."""
        return self._missing

    def with_missing(self, missing: Iterable[str]) -> Upload:
        """Return the upload, marked as one whose client left fields out."""
        marked = self.model_copy()
        marked._missing = tuple(missing)
        return marked


def _storable(details: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Return values that Postgres holds as jsonb, or raise ``ValueError``."""
    text = json.dumps(details, allow_nan=False, ensure_ascii=False)
    text.encode()
    if _NUL.search(text):
        raise ValueError("holds the character NUL")
    _check_readable(details)
    return details


def _check_readable(value: JsonValue, depth: int = 1) -> None:
    """Raise ``ValueError`` for what not every parser reads, or what cannot be answered again."""
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise ValueError(f"holds an integer over {MAX_INTEGER:,}")
    if isinstance(value, dict | list):
        if depth > _MAX_DEPTH:
            raise ValueError(f"is nested over {_MAX_DEPTH} deep")
        for each in value.values() if isinstance(value, dict) else value:
            _check_readable(each, depth + 1)


_MAX_DEPTH = 64


_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class NewBenchmark(Contract, defer_build=False):
    """A figure that was measured on a version of a trained adapter."""

    adapter: Label
    version: Label
    metric: Label
    value: FiniteFloat
    n: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """How many cases it is the figure of."""
    task_id: TaskId | None = None
    session_id: Identity | None = None
    """The stored session that it was measured on, if it was one."""
    details: Annotated[dict[str, JsonValue], Field(max_length=100), AfterValidator(_storable)] = {}


class Benchmark(NewBenchmark):
    """A stored benchmark."""

    id: int
    created_at: datetime


class StoredSession(Contract):
    """A stored session without its record."""

    id: UUID
    task_id: TaskId
    repo_name: Name
    repo_remote: str | None
    branch: str | None
    base_ref: CommitId
    created_at: datetime
    """When the session was stopped, as the recorder tells."""
    received_at: datetime
    status: Status
    sha256: str
    """Of the record as it is written in JSON, before the service replaced secrets; without the
    times that the service filled in."""
    size: int
    """Bytes of the stored record."""
    verified: bool
    files: int
    validated: bool
    """A validation command ran on the final tree."""
    redactions: int
    not_ready: list[str] = []
    """Why the session cannot be marked ready, in words."""


T = TypeVar("T")

Scope = Literal["read", "write", "export"]
SCOPES: tuple[Scope, ...] = ("read", "write", "export")


class NewRow(Struct, frozen=True, kw_only=True):
    """A checked record, ready to be stored."""

    id: UUID
    task_id: str
    repo_name: str
    repo_remote: str | None
    branch: str | None
    base_ref: str
    created_at: datetime
    """When the session was stopped."""
    sha256: str
    """Of the record's JSON before secrets were replaced, without times that the service filled in,
    in hex: what makes a repeated upload the same upload."""
    text: bytes
    """The record's JSON text to store: UTF-8, without NUL and lone surrogates."""
    status: Status = "draft"
    verified: bool
    files: int
    """Changed files."""
    validated: bool
    """A validation command ran on the final tree."""
    redactions: int
    not_ready: list[str] = []
    """Why it cannot be marked ready, in words."""


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions are selected; None does not restrict."""

    task_id: str | None = None
    since: datetime | None = None
    """Stopped at this time or later."""
    until: datetime | None = None
    """Stopped before this time."""
    status: Status | None = None
    repo_name: str | None = None


class Page(Struct, Generic[T], frozen=True):
    """A part of a listing, and the cursor that continues after it."""

    items: tuple[T, ...]
    cursor: str
    """Continues after the last item. On the last page it continues after everything stored so
    far, so that rows received later follow it."""
    more: bool
    """There were more items when the page was read."""


class StoreCounts(Struct, frozen=True):
    """How much a store contains."""

    tasks: int
    sessions: int
    ready: int
    size: int
    """Bytes that the database takes."""


class StoredRecord(Struct, frozen=True, gc=False):
    """A record that a store or a server gives out."""

    id: UUID
    """Of the session."""
    status: Status
    text: bytes
    """The stored record's exact bytes."""


class Token(Struct, frozen=True):
    """A bearer token and its scopes; the secret itself is not stored."""

    name: str
    scopes: list[Scope]
    created_at: datetime
    last_used_at: datetime | None = None
    """To the minute."""
    revoked_at: datetime | None = None


def moment_of(text: str) -> datetime:
    """Return the moment that a day (its beginning in UTC) or a time with its zone names.

    Raises:
        ValueError: it names none; says why.
    """
    if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        text += "T00:00:00Z"
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]", text):
        raise ValueError("is neither a day such as 2026-01-31 nor a time as 2026-01-31T00:00:00Z")
    if re.search(r":[0-9.]+ [0-9]{2}:?[0-9]{2}$", text):
        raise ValueError("has a space for the + of its zone: write %2B")
    moment = datetime.fromisoformat(text.upper())
    if moment.tzinfo is None:
        raise ValueError("has no zone: end it with Z for UTC")
    if not 1 < moment.year < 9999:
        raise ValueError("is out of range: years 2 to 9998")
    return moment.astimezone(UTC)


class StorageError(DebriefError):
    """The database is away, busy, or not in the state that this version works with.

    A service answers 503: the same request may succeed later, when the next move was made.
    """


class AwayError(StorageError):
    """Nothing answers at the database's address, or what answers lets nobody in.

    Its reason tells where that is, which is none of a client's business.
    """


class ReasonsError(InputError):
    """An error that keeps its reasons apart, for who shows one a line."""

    status = 422
    """With which a service answers; so have the others."""

    def __init__(self, culprit: str, reasons: str | Iterable[str], next_move: str) -> None:
        self.reasons = [reasons] if isinstance(reasons, str) else list(reasons)
        super().__init__(culprit, "; ".join(self.reasons), next_move)


class ConflictError(ReasonsError):
    """It contradicts what is stored."""

    status = 409


class UnfitError(ReasonsError):
    """A body that can be read and not be stored; names everything that is wrong with it."""


class UnknownTaskError(InputError):
    """A session names a task that nobody has made."""

    status = 404


class NotFoundError(InputError):
    """Nothing is stored under that id or name."""

    status = 404


class CursorError(InputError):
    """A cursor that this database did not give, or that it gave before it was restored."""


class MalformedError(InputError):
    """Bytes that are not JSON."""

    status = 400

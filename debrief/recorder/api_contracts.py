"""What the recorder's API takes and gives, beside records: tasks, uploads, sessions, benchmarks."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field, FiniteFloat, JsonValue

from debrief.recorder.contracts import (
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


class NewTask(Contract):
    """A bucket of work, as it is made."""

    id: TaskId
    name: Annotated[str, Field(min_length=1, max_length=200)]
    description: Annotated[str, Field(max_length=10_000)] | None = None


class Task(NewTask):
    """A bucket of work."""

    created_at: datetime


class Upload(Contract):
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


class NewBenchmark(Contract):
    """A figure that was measured on a version of a trained adapter."""

    adapter: Label
    version: Label
    metric: Label
    value: FiniteFloat
    n: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    """How many cases it is the figure of."""
    task_id: TaskId | None = None
    session_id: UUID | None = None
    """The stored session that it was measured on, if it was one."""
    details: Annotated[dict[str, JsonValue], Field(max_length=100)] = {}


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
    """Of the record's bytes as they were sent."""
    size: int
    """Bytes of the stored record."""
    verified: bool
    files: int
    validated: bool
    """A validation command ran on the final tree."""
    redactions: int
    not_ready: list[str] = []
    """Why the session cannot be marked ready, in words."""

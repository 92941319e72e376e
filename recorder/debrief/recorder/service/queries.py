"""What a query may select: unknown names and values that do not fit are refused."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StringConstraints

from debrief.recorder.contracts import Contract, TaskId, reading
from debrief.recorder.exporting import Form
from debrief.recorder.storage.rows import (
    SessionFilter,
    moment_of,
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

"""A record that was checked when it was made, as exports and the pipeline read it.

Read tolerantly: what is not needed is left undecoded, and what a later recorder adds is ignored.
``contracts`` is the same record as it is made and checked, whose models take 0.2 s to load.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

NO_CONTENTS = "its record tells which files changed, and nothing of what is in them"


class RecordFunction(Struct, gc=False):
    """The function of a call; ``arguments`` is JSON text."""

    name: str
    arguments: str


class RecordCall(Struct, gc=False):
    """A call."""

    id: str
    function: RecordFunction
    type: str = "function"


class RecordMessage(Struct, kw_only=True, gc=False):
    """A message of any role; its content is null in records of other programs alone."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[RecordCall, ...] | UnsetType | None = UNSET
    tool_call_id: str | UnsetType = UNSET


class RecordChange(Struct, frozen=True, gc=False):
    """A changed file, in numbers."""

    path: str
    added: int = 0
    removed: int = 0


class RecordCommand(Struct, frozen=True, rename="camel", gc=False):
    """How a recorded command ended."""

    call_id: str
    exit_code: int | None = None


class RecordRedactions(Struct, frozen=True, gc=False):
    """Secrets that placeholders stand for already."""

    count: int = 0
    unsure: int = 0


class RecordMeta(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Where a record came from."""

    session_id: str
    task_id: str
    repo_name: str
    base_ref: str
    started_at: datetime
    stopped_at: datetime
    recorder: str = ""
    branch: str | None = None
    contents: str = "full"
    verified: bool = False
    changes: tuple[RecordChange, ...] = ()
    """Of a record without contents; others tell it by their patches."""
    commands: tuple[RecordCommand, ...] = ()
    redactions: RecordRedactions = RecordRedactions()

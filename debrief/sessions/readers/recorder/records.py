"""A record as far as a session is made of it.

Read tolerantly, as all transcripts are: what is not needed is left undecoded, and what a later
recorder adds is passed over. Whoever takes records in checks them by the contract itself.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec
from msgspec import Raw, Struct


class Function(Struct, frozen=True, gc=False):
    """The function of a call; ``arguments`` is JSON text."""

    name: str
    arguments: str


class Call(Struct, frozen=True, gc=False):
    """A call."""

    id: str
    function: Function


class RecordMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message of any role."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str = ""
    tool_calls: tuple[Call, ...] | None = None
    tool_call_id: str = ""


class Change(Struct, frozen=True, gc=False):
    """A changed file, in numbers."""

    path: str
    added: int = 0
    removed: int = 0


class Command(Struct, frozen=True, rename="camel", gc=False):
    """How a recorded command ended."""

    call_id: str
    exit_code: int | None = None


class Redactions(Struct, frozen=True, gc=False):
    """Secrets that placeholders stand for already."""

    count: int = 0
    unsure: int = 0


class Meta(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """What a record tells of itself."""

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
    changes: tuple[Change, ...] = ()
    commands: tuple[Command, ...] = ()
    redactions: Redactions = Redactions()


class Record(Struct, frozen=True, gc=False):
    """A record with its conversation."""

    messages: tuple[RecordMessage, ...]
    tools: Raw
    meta: Meta


class RecordHead(Struct, frozen=True, gc=False):
    """A record without its conversation."""

    messages: Raw
    meta: Meta


RECORD = msgspec.json.Decoder(Record)
HEAD = msgspec.json.Decoder(RecordHead)


class Operation(Struct, frozen=True, gc=False):
    """One operation of a patch."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: str = ""


class Patch(Struct, frozen=True, gc=False):
    """Arguments of ``apply_patch``."""

    ops: tuple[Operation, ...]


class ReadFile(Struct, frozen=True, gc=False):
    """Arguments of ``repo.readFile``."""

    path: str


PATCH = msgspec.json.Decoder(Patch)
READ_FILE = msgspec.json.Decoder(ReadFile)

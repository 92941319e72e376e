"""A record as far as a session is made of it.

Read tolerantly, as all transcripts are: what is not needed is left undecoded, and what a later
recorder adds is passed over. Whoever takes records in checks them by the contract itself.

A bare record is one that another program put together: messages, and of ``meta`` no more than
task, repository and baseline, in snake case. It has no id, no times and no tools, and nobody
verified it.
"""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

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


class BareMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message whose content may be null."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[Call, ...] | None = None
    tool_call_id: str = ""


class BareMeta(Struct, frozen=True, kw_only=True, gc=False):
    """What a bare record tells of itself."""

    task_id: str
    repo_name: str
    base_ref: str
    branch: str | None = None


class BareRecord(Struct, frozen=True, gc=False):
    """A bare record with its conversation."""

    messages: tuple[BareMessage, ...]
    meta: BareMeta


class BareHead(Struct, frozen=True, gc=False):
    """A bare record without its conversation."""

    messages: Raw
    meta: BareMeta


BARE = msgspec.json.Decoder(BareRecord)
BARE_HEAD = msgspec.json.Decoder(BareHead)


def identity_of(data: bytes) -> str:
    """Return the id of a bare record: of its bytes, so that a copy is the same session."""
    return str(uuid5(NAMESPACE_OID, sha256(data).hexdigest()))


def completed(bare: BareRecord, data: bytes, written: datetime) -> Record:
    """Return a bare record with an id and times.

    Args:
        bare: the record.
        data: its bytes.
        written: when, as far as is known.
    """
    meta = bare.meta
    return Record(
        messages=tuple(
            RecordMessage(
                role=message.role,
                content=message.content or "",
                tool_calls=message.tool_calls,
                tool_call_id=message.tool_call_id,
            )
            for message in bare.messages
        ),
        tools=Raw(b"[]"),
        meta=Meta(
            session_id=identity_of(data),
            task_id=meta.task_id,
            repo_name=meta.repo_name,
            base_ref=meta.base_ref,
            branch=meta.branch,
            started_at=written,
            stopped_at=written,
        ),
    )


class Operation(Struct, frozen=True, gc=False):
    """One operation of a patch."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: str = ""


class Patch(Struct, frozen=True, gc=False):
    """Arguments of ``apply_patch``; bare records tell the operations by their whole name."""

    ops: tuple[Operation, ...] | None = None
    operations: tuple[Operation, ...] | None = None


class ReadFile(Struct, frozen=True, gc=False):
    """Arguments of ``repo.readFile``."""

    path: str


PATCH = msgspec.json.Decoder(Patch)
READ_FILE = msgspec.json.Decoder(ReadFile)

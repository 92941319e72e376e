"""The part of a recorder's record that a session is built from.

Read tolerantly, as all transcripts are: what is not needed is left undecoded, and what a later
recorder adds is ignored. The recorder's service checks records by the contract itself.

A bare record is one that another program put together: messages, and in ``meta`` only task,
repository and baseline, in snake case. It has no id, no times and no tools, and nobody verified it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import Raw, Struct

NOT_A_RECORD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding what is not a record."""


class RecordFunction(Struct, frozen=True, gc=False):
    """The function of a call; ``arguments`` is JSON text."""

    name: str
    arguments: str


class RecordCall(Struct, frozen=True, gc=False):
    """A call."""

    id: str
    function: RecordFunction


class RecordMessage(Struct, frozen=True, kw_only=True, gc=False):
    """A message of any role; the content is null only in bare records."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None = None
    tool_calls: tuple[RecordCall, ...] | None = None
    tool_call_id: str = ""


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
    commands: tuple[RecordCommand, ...] = ()
    redactions: RecordRedactions = RecordRedactions()


class _BareMeta(Struct, frozen=True, kw_only=True, gc=False):
    task_id: str
    repo_name: str
    base_ref: str
    branch: str | None = None


class RecordParts(Struct, frozen=True, gc=False):
    """A record whose parts are not decoded yet."""

    messages: Raw
    meta: Raw
    tools: Raw = Raw(b"[]")


class RecordOperation(Struct, frozen=True, gc=False):
    """One operation of a patch."""

    type: Literal["create_file", "update_file", "delete_file"]
    path: str
    diff: str = ""


class RecordPatch(Struct, frozen=True, gc=False):
    """Arguments of ``apply_patch``; bare records name the operations by their whole name."""

    ops: tuple[RecordOperation, ...] | None = None
    operations: tuple[RecordOperation, ...] | None = None


class RecordPath(Struct, frozen=True, gc=False):
    """Arguments of ``repo.readFile``."""

    path: str


PARTS = msgspec.json.Decoder(RecordParts)
MESSAGES = msgspec.json.Decoder(tuple[RecordMessage, ...])
_META = msgspec.json.Decoder(RecordMeta)


def decode_meta(data: bytes, written: Callable[[], datetime] | None = None) -> RecordMeta:
    """Return where a record came from, without decoding its conversation.

    The id of a bare record is made of its bytes, so that a copy is the same session.

    Args:
        data: the record's bytes.
        written: returns when a bare record was written; None if none is accepted.

    Raises:
        DecodeError: it is not a record; another one of ``NOT_A_RECORD`` is possible.
    """
    raw = PARTS.decode(data).meta
    try:
        return _META.decode(raw)
    except msgspec.DecodeError as error:
        try:
            bare = msgspec.json.decode(raw, type=_BareMeta)
        except msgspec.DecodeError:
            raise error from None
        if written is None:
            raise
    moment = written()
    return RecordMeta(
        session_id=str(uuid5(NAMESPACE_OID, sha256(data).hexdigest())),
        started_at=moment,
        stopped_at=moment,
        **msgspec.structs.asdict(bare),
    )

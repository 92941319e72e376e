"""Records as transcripts: their parts, decoded one by one, and those that other programs wrote.

A bare record is one that another program put together: messages, and in ``meta`` only task,
repository and baseline, in snake case. It has no id, no times and no tools, and nobody verified it.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Literal
from uuid import NAMESPACE_OID, uuid5

import msgspec
from msgspec import Raw, Struct

from debrief.recorder.stored import RecordMessage, RecordMeta
from debrief.sessions.readers.values import NO_TIME

NOT_A_RECORD = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding what is not a record."""


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


def decode_meta(data: bytes, *, takes_bare: bool = False) -> RecordMeta:
    """Return where a record came from, without decoding its conversation.

    The id of a bare record is made of its bytes, so that a copy is the same session. Its times are
    ``NO_TIME``.

    Args:
        data: the record's bytes.
        takes_bare: accept a bare record.

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
        if not takes_bare:
            raise
    return RecordMeta(
        session_id=str(uuid5(NAMESPACE_OID, sha256(data).hexdigest())),
        started_at=NO_TIME,
        stopped_at=NO_TIME,
        **msgspec.structs.asdict(bare),
    )

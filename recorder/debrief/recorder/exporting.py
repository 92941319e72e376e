"""Stored records as lines: as they are, or as chat messages that a trainer reads.

All other forms, splits and cards are the pipeline's, which reads records as it reads every session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from debrief.errors import InputError
from debrief.recorder.storage.rows import StoredRecord
from debrief.recorder.stored import NO_CONTENTS, RecordMessage, RecordMeta

Form = Literal["record", "messages"]
FORMS: tuple[Form, ...] = ("record", "messages")
_LEGAL = {"repo.readFile": "repo_readFile"}
"""Where models are tuned, a function's name has no dot."""


class ExportedLine(Struct, frozen=True, gc=False):
    """The line of one record."""

    id: UUID
    line: bytes
    """With its line end; empty if the record is withheld."""
    withheld: str = ""
    """Why it is."""


def lines_of(form: Form, records: Iterable[StoredRecord]) -> Iterator[ExportedLine]:
    """Yield the line of each record, in order, one at a time.

    A record of which no line can be made is withheld with the reason.

    Args:
        form: ``record`` is the stored text itself.
        records: of a store, which were searched for secrets before they were stored.
    """
    for record in records:
        try:
            line = record_line(record) if form == "record" else messages_line(record)
        except InputError as refusal:
            yield ExportedLine(record.id, b"", refusal.reason)
        else:
            yield ExportedLine(record.id, line)


def record_line(record: StoredRecord) -> bytes:
    """Return a record's JSON as one line."""
    # Within JSON a line end can only be white space.
    return record.text.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n"


class _Definition(Struct, gc=False):
    function: dict[str, Raw]
    type: str = "function"


class _Record(Struct, gc=False):
    messages: list[RecordMessage]
    tools: list[_Definition]
    meta: RecordMeta


_RECORD = msgspec.json.Decoder(_Record)
_NAME = msgspec.json.Decoder(str)


def messages_line(record: StoredRecord) -> bytes:
    """Return a record as a line of ``messages``, ``tools`` and ``metadata``.

    Raises:
        InputError: it is no record, or holds no contents that a model could learn from.
    """
    culprit = f"session {record.id}"
    try:
        decoded = _RECORD.decode(record.text)
        for tool in decoded.tools:
            name = _NAME.decode(tool.function["name"])
            tool.function["name"] = Raw(msgspec.json.encode(_LEGAL.get(name, name)))
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise InputError(culprit, f"is no record: {error}") from error
    meta = decoded.meta
    if meta.contents != "full":
        raise InputError(culprit, NO_CONTENTS)
    if not decoded.messages:
        raise InputError(culprit, "is no record: it has no messages")
    for message in decoded.messages:
        for call in message.tool_calls or ():
            call.function.name = _LEGAL.get(call.function.name, call.function.name)
    line = {
        "messages": decoded.messages,
        "tools": decoded.tools,
        "metadata": {
            "session_id": meta.session_id,
            "task": meta.task_id,
            "repository": meta.repo_name,
            "base_commit": meta.base_ref,
            "status": record.status,
        },
    }
    return msgspec.json.encode(line) + b"\n"

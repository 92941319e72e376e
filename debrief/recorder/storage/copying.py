"""Rows as ``COPY … (FORMAT binary)`` takes them: the record's bytes go as they are.

An INSERT would carry them as a quoted literal, which the driver has to write and the server to
read character by character; for 47 kB that is a good part of what storing a record costs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from debrief.recorder.storage.rows import NewRow
from debrief.recorder.storage.sessions import in_utc

COLUMNS = (
    *("id", "task_id", "repo_name", "repo_remote", "branch", "base_ref", "created_at"),
    *("record_text", "size", "sha256", "status", "verified", "files", "validated"),
    *("redactions", "not_ready"),
)
"""What ``rows_in_binary`` writes of a row, in its order."""
_HEAD = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END = b"\xff\xff"
_FIELDS = struct.pack("!h", len(COLUMNS))
_NULL = b"\xff\xff\xff\xff"
_LENGTH = struct.Struct("!i")
_INTEGER = struct.Struct("!ii")
_TIME = struct.Struct("!iq")
_ARRAY = struct.Struct("!iii")
_DIMENSION = struct.Struct("!ii")
_TEXT_OID = 25
_TRUE, _FALSE = b"\0\0\0\1\1", b"\0\0\0\1\0"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def rows_in_binary(rows: Iterable[NewRow]) -> bytes:
    """Return rows as the whole input of a COPY of ``COLUMNS``.

    Raises:
        InputError: a moment has no time zone, or none that Postgres can hold.
        ValueError: a text cannot be written in UTF-8.
        struct.error: a number is not a whole one of four bytes.
    """
    pieces = [_HEAD]
    for row in rows:
        pieces += _row(row)
    pieces.append(_END)
    return b"".join(pieces)


def _row(row: NewRow) -> list[bytes]:
    return [
        _FIELDS,
        _bytes(row.id.bytes),
        _text(row.task_id),
        _text(row.repo_name),
        _text(row.repo_remote),
        _text(row.branch),
        _text(row.base_ref),
        _TIME.pack(8, (in_utc(row.created_at) - _EPOCH) // _MICROSECOND),
        _LENGTH.pack(len(row.text)),
        row.text,
        _INTEGER.pack(4, len(row.text)),
        _text(row.sha256),
        _text(row.status),
        _TRUE if row.verified else _FALSE,
        _INTEGER.pack(4, row.files),
        _TRUE if row.validated else _FALSE,
        _INTEGER.pack(4, row.redactions),
        _bytes(_texts(row.not_ready)),
    ]


def _bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value


def _text(value: str | None) -> bytes:
    return _NULL if value is None else _bytes(value.encode())


def _texts(values: tuple[str, ...]) -> bytes:
    if not values:
        return _ARRAY.pack(0, 0, _TEXT_OID)
    return b"".join(
        (_ARRAY.pack(1, 0, _TEXT_OID), _DIMENSION.pack(len(values), 1), *map(_text, values))
    )

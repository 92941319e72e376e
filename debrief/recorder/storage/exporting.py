"""Records on their way out: COPY, read as it comes, in constant memory."""

from __future__ import annotations

import queue
import struct
import threading
from collections.abc import Generator, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from uuid import UUID

import sqlalchemy as sa

from debrief.recorder.storage import cursors
from debrief.recorder.storage.connecting import explained, meaning
from debrief.recorder.storage.rows import ExportedRow, SessionFilter
from debrief.recorder.storage.sessions import conditions
from debrief.recorder.storage.tables import sessions as table

if TYPE_CHECKING:
    from sqlalchemy import Engine

_BATCH = 1 << 19
"""Bytes that are handed over at once."""
_WAITING = 4
"""Batches that may wait for the reader."""
_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEAD = struct.Struct("!hiqi16sibi")
"""Of a row: the number of fields, then each with its length: number, id, ready, text."""


class Export(Iterator[ExportedRow]):
    """An export under way: rows in the order they were received, from one snapshot.

    Iterate over it, or over its ``batches``; close it when it is not read to its end. A failure
    on the way is raised where the rows are read, so that an export that ends is whole.

    Args:
        engine: where connections come from; one is held until the export has ended.
        filters: which sessions.
        cursor: where to go on.
        limit: how many rows at most.

    Raises:
        CursorError: the cursor is not one of this database.
        StorageError: the database is away or busy.
    """

    count: int
    """Rows that this export has from its first to its last."""
    end: str
    """The cursor after its last row, or where it started if it has none."""

    def __init__(
        self, engine: Engine, filters: SessionFilter, cursor: str | None, limit: int | None
    ) -> None:
        with explained():
            self._connection = engine.connect()
            try:
                self._open(filters, cursor, limit)
            except BaseException:
                self._connection.close()
                raise
        self._batches = self._read()
        self._rows = (row for batch in self._batches for row in batch)

    def _open(self, filters: SessionFilter, cursor: str | None, limit: int | None) -> None:
        span = cursors.settled(self._connection, table.c.number, "received", cursor)
        self._span = span
        self._connection.execution_options(isolation_level="REPEATABLE READ")
        self._connection.exec_driver_sql("SET LOCAL statement_timeout = 0")
        self._connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        chosen = (
            sa.select(table.c.number)
            .where(*conditions(filters), table.c.number > span.after, table.c.number <= span.last)
            .order_by(table.c.number)
            .limit(limit)
        )
        inner = chosen.subquery()
        query = sa.select(sa.func.count(), sa.func.max(inner.c.number)).select_from(inner)
        self.count, last = self._connection.execute(query).one()
        self.end = span.cursor(span.after if last is None else last)
        copied = chosen.with_only_columns(
            table.c.number, table.c.id, table.c.status == "ready", table.c.record_text
        )
        compiled = copied.compile(dialect=self._connection.dialect)
        raw: Any = self._connection.connection.driver_connection
        with raw.cursor() as writer:
            query = writer.mogrify(str(compiled), compiled.params).decode()
        self._copy = f"COPY ({query}) TO STDOUT (FORMAT binary)"

    def __iter__(self) -> Export:
        return self

    def __next__(self) -> ExportedRow:
        return next(self._rows)

    def __enter__(self) -> Export:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the export where it is, and give its connection back."""
        self._rows.close()
        self._batches.close()
        self._connection.close()

    def batches(self) -> Iterator[list[ExportedRow]]:
        """Yield the rows in lists of about half a megabyte; use either this or the rows."""
        return self._batches

    def _read(self) -> Generator[list[ExportedRow], None, None]:
        raw: Any = self._connection.connection.driver_connection
        pieces = _Pieces()
        reader = threading.Thread(target=pieces.copy, args=(raw, self._copy), daemon=True)
        reader.start()
        whole = False
        try:
            rest = b""
            for batch in pieces:
                rows, rest = self._parse(b"".join([rest, *batch]))
                if rows:
                    yield rows
            whole = True
        finally:
            pieces.abandoned.set()
            if not whole:
                with suppress(Exception):
                    raw.cancel()
            reader.join()
            if not whole:
                self._connection.invalidate()
            self._connection.close()

    def _parse(self, data: bytes) -> tuple[list[ExportedRow], bytes]:
        """Return the whole rows in ``data``, COPY's binary form, and what is left of it."""
        at = 0
        if data.startswith(_SIGNATURE):
            (extension,) = struct.unpack_from("!I", data, len(_SIGNATURE) + 4)
            at = len(_SIGNATURE) + 8 + extension
        rows: list[ExportedRow] = []
        while len(data) - at >= _HEAD.size:
            _, _, number, _, id, _, ready, length = _HEAD.unpack_from(data, at)
            start = at + _HEAD.size
            if len(data) - start < length:
                break
            at = start + length
            rows.append(
                ExportedRow(
                    self._span.cursor(number),
                    UUID(bytes=id),
                    "ready" if ready else "draft",
                    data[start:at],
                )
            )
        return rows, data[at:]


class _Pieces:
    """What COPY writes, handed from the thread that it fills to the one that reads."""

    def __init__(self) -> None:
        self.abandoned = threading.Event()
        self._handed: queue.Queue[list[bytes] | BaseException | None] = queue.Queue(_WAITING)
        self._pieces: list[bytes] = []
        self._size = 0

    def copy(self, connection: Any, statement: str) -> None:
        """Run COPY to its end; its failure is handed over too."""
        try:
            with connection.cursor() as cursor:
                cursor.copy_expert(statement, self)
        except BaseException as error:
            self._put(error)
        else:
            self._put(self._pieces)
            self._put(None)

    def write(self, data: bytes) -> None:
        """Take what psycopg2 gives, a row at a time."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size >= _BATCH:
            self._put(self._pieces)
            self._pieces, self._size = [], 0

    def __iter__(self) -> Iterator[list[bytes]]:
        while (handed := self._handed.get()) is not None:
            if isinstance(handed, BaseException):
                raise meaning(handed)
            yield handed

    def _put(self, item: list[bytes] | BaseException | None) -> None:
        while not self.abandoned.is_set():
            try:
                return self._handed.put(item, timeout=0.1)
            except queue.Full:
                continue
        if isinstance(item, list):
            raise _AbandonedError


class _AbandonedError(Exception):
    """Nobody reads any more."""

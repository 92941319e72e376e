"""Records out of the database: one snapshot, read in small batches, in constant memory."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import sqlalchemy as sa

from debrief.recorder.storage.connecting import explained
from debrief.recorder.storage.cursors import settled_rows
from debrief.recorder.storage.rows import StoredRecord
from debrief.recorder.storage.tables import sessions as table

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

_BATCH = 16
"""Rows that the database sends at once. A record may have 8 MB."""


class Export(Iterator[StoredRecord]):
    """The rows of an export, in the order they were received, from one snapshot.

    Close it when it is not read to its end. A failure is raised where the rows are read, so an
    export that ends is complete.

    Args:
        engine: where connections come from; one is used until the export has ended.
        conditions: which sessions.
        cursor: where to continue.
        limit: how many rows at most.

    Raises:
        CursorError: the cursor is not one of this database.
        StorageError: the database is away or busy.
    """

    count: int
    """Rows of this export from its first to its last."""
    end: str
    """The cursor after its last row, or where it started if it has none."""

    def __init__(
        self,
        engine: Engine,
        conditions: list[sa.ColumnElement[bool]],
        cursor: str | None,
        limit: int | None,
    ) -> None:
        with explained():
            self._connection = engine.connect()
            try:
                self._rows = self._open(self._connection, conditions, cursor, limit)
            except BaseException:
                self._connection.close()
                raise

    def _open(
        self,
        connection: Connection,
        conditions: list[sa.ColumnElement[bool]],
        cursor: str | None,
        limit: int | None,
    ) -> Generator[StoredRecord, None, None]:
        settled = settled_rows(connection, table.c.number, "received", cursor)
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.execute(sa.text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        numbers = (
            sa.select(table.c.number)
            .where(*conditions, table.c.number > settled.after, table.c.number <= settled.last)
            .order_by(table.c.number)
            .limit(limit)
        )
        column = numbers.subquery().c.number
        self.count, last = connection.execute(sa.select(sa.func.count(), sa.func.max(column))).one()
        self.end = settled.cursor(settled.after if last is None else last)
        query = numbers.with_only_columns(table.c.id, table.c.status, table.c.record_text)
        rows = connection.execution_options(stream_results=True, yield_per=_BATCH).execute(query)

        def read() -> Generator[StoredRecord, None, None]:
            with explained(), connection:
                for id, status, text in rows:
                    yield StoredRecord(id, status, text.encode())

        return read()

    def __next__(self) -> StoredRecord:
        return next(self._rows)

    def __enter__(self) -> Export:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the export, and give its connection back."""
        self._rows.close()
        self._connection.close()

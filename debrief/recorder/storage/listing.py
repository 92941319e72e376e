"""The tables as queries name them, and listings of their rows that skip none.

The migrations alone say how the tables are made. Rows are numbered by a sequence, so a number may
be drawn early and committed late; a reader that had passed it would never see the row. Every
writer therefore holds a shared lock from before it draws a number until it has committed. A reader
takes the same lock exclusively for a moment: all numbers up to the highest one that it then sees
are settled. Writers commit side by side, and a reader waits no longer than the inserts under way.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from debrief.recorder.storage.connecting import explained
from debrief.recorder.storage.rows import CursorError, StoredRecord


def _columns(*names: str) -> list[sa.ColumnClause[object]]:
    """Return columns whose values Postgres's driver converts by itself."""
    return [sa.column(name) for name in names]


tasks = sa.table("tasks", *_columns("id", "name", "description", "created_at"))

sessions = sa.table(
    "sessions",
    sa.column("id", UUID(as_uuid=True)),
    sa.column("number", sa.BigInteger),
    sa.column("changed", sa.BigInteger),
    sa.column("record_text", sa.Text),
    sa.column("not_ready", ARRAY(sa.Text)),
    *_columns("task_id", "repo_name", "repo_remote", "branch", "base_ref", "created_at"),
    *_columns("received_at", "size", "sha256", "status"),
    *_columns("verified", "files", "validated", "redactions"),
)

tokens = sa.table(
    "tokens",
    sa.column("scopes", ARRAY(sa.Text)),
    *_columns("name", "sha256", "created_at", "last_used_at", "revoked_at"),
)

benchmarks = sa.table(
    "benchmarks",
    sa.column("id", sa.BigInteger),
    sa.column("session_id", UUID(as_uuid=True)),
    sa.column("details", JSONB),
    *_columns("adapter", "version", "task_id", "metric", "value", "n", "created_at"),
)

store = sa.table("store", sa.column("id"))
"""One row: which history the cursors of this database speak of."""


_NUMBERING_LOCK = 0x6465627269656602
_CURSOR = re.compile(r"([0-9a-f]{8})-([a-z]+)-([0-9a-f]{1,15})")


class SettledRows(NamedTuple):
    """The settled rows after a cursor: numbers above ``after``, up to ``last``."""

    store: str
    order: str
    after: int
    last: int

    def cursor(self, number: int) -> str:
        """Return the cursor that continues after ``number``."""
        return f"{self.store}-{self.order}-{number:x}"


def lock_numbering(connection: sa.Connection) -> None:
    """Take the shared lock; call it before the transaction draws a number."""
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(_NUMBERING_LOCK)))


def settled_rows(
    connection: sa.Connection, column: sa.ColumnElement[int], order: str, cursor: str | None
) -> SettledRows:
    """Return the settled rows after ``cursor``; ends the connection's transaction.

    Args:
        connection: outside a transaction.
        column: the column with the rows' numbers.
        order: the name that cursors along this column contain.
        cursor: where to continue; None is the beginning.

    Raises:
        CursorError: it is not a cursor, or belongs to another listing or another history.
    """
    connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_NUMBERING_LOCK)))
    query = sa.select(
        sa.select(store.c.id).scalar_subquery(),
        sa.select(sa.func.coalesce(sa.func.max(column), 0)).scalar_subquery(),
    )
    name, last = connection.execute(query).one()
    connection.commit()
    if cursor is None:
        return SettledRows(name, order, 0, last)
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[2] != order:
        raise CursorError("the cursor", "is not one of this listing", "Start again without one.")
    if match[1] != name:
        raise CursorError(
            "the cursor",
            "is of another database, or of this one before it was restored",
            "Start again without one; sessions keep their ids.",
        )
    return SettledRows(name, order, int(match[3], 16), last)


_BATCH = 16
"""Rows that the database sends at once. A record may have 8 MB."""


class Export(Iterator[StoredRecord], AbstractContextManager["Export"]):
    """The rows of an export, in the order they were received, from one snapshot.

    They are read in small batches, in constant memory. Close it when it is not read to its end. A
    failure is raised where the rows are read, so an export that ends is complete.

    Args:
        connection: outside a transaction; used, and closed, by the export.
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
        connection: sa.Connection,
        conditions: list[sa.ColumnElement[bool]],
        cursor: str | None,
        limit: int | None,
    ) -> None:
        settled = settled_rows(connection, sessions.c.number, "received", cursor)
        connection.execution_options(isolation_level="REPEATABLE READ")
        connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        numbers = (
            sa.select(sessions.c.number)
            .where(
                *conditions, sessions.c.number > settled.after, sessions.c.number <= settled.last
            )
            .order_by(sessions.c.number)
            .limit(limit)
        )
        column = numbers.subquery().c.number
        self.count, last = connection.execute(sa.select(sa.func.count(), sa.func.max(column))).one()
        self.end = settled.cursor(settled.after if last is None else last)
        query = numbers.with_only_columns(sessions.c.id, sessions.c.status, sessions.c.record_text)
        self._connection = connection
        rows = connection.execution_options(stream_results=True, yield_per=_BATCH).execute(query)
        self._rows = _records(connection, rows)

    def __next__(self) -> StoredRecord:
        return next(self._rows)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the export, and give its connection back."""
        self._rows.close()
        self._connection.close()


def _records(connection: sa.Connection, rows: Iterable[Any]) -> Generator[StoredRecord, None, None]:
    with explained(), connection:
        for id, status, text in rows:
            yield StoredRecord(id, status, text.encode())

"""Cursors that skip no row, however late its transaction commits.

Rows are numbered by a sequence, so a number may be drawn early and committed late; a reader that
had passed it would never see the row. Every writer therefore holds a shared lock from before it
draws a number until it has committed. A reader takes the same lock exclusively for a moment: all
numbers up to the highest one that it then sees are settled. Writers commit side by side, and a
reader waits no longer than the inserts under way.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import sqlalchemy as sa

from debrief.recorder.errors import CursorError
from debrief.recorder.storage.tables import store

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

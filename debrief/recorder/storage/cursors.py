"""Cursors that skip no row, however late its transaction commits.

Rows are numbered by a sequence, and a number may be drawn early and committed late: a reader that
had gone past it would never see it. So whoever numbers a row holds a lock, shared with all others
that do, until it has committed; a reader takes the same lock alone for a moment, and all numbers
up to the highest that it then sees are settled. Writers commit side by side, and a reader waits no
longer than the inserts that are under way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from debrief.recorder.errors import CursorError

if TYPE_CHECKING:
    import sqlalchemy as sa

NUMBERING_LOCK = 0x6465627269656602
"""Advisory lock: shared by those who number rows, taken alone by those who read in order."""

_CURSOR = re.compile(r"([0-9a-f]{8})-([a-z]+)-([0-9a-f]{1,15})")


class Span(NamedTuple):
    """The settled rows after a cursor."""

    store: str
    order: str
    after: int
    last: int

    def cursor(self, number: int) -> str:
        """Return the cursor that goes on after ``number``."""
        return f"{self.store}-{self.order}-{number:x}"


def numbering(connection: sa.Connection) -> None:
    """Announce that this transaction numbers rows; to be called before it draws a number."""
    import sqlalchemy as sa

    connection.execute(
        sa.text("SELECT pg_advisory_xact_lock_shared(:key)"), {"key": NUMBERING_LOCK}
    )


def settled(
    connection: sa.Connection, column: sa.Column[int], order: str, cursor: str | None
) -> Span:
    """Return the span of settled rows after ``cursor``; ends the connection's transaction.

    Args:
        connection: outside a transaction.
        column: what the rows are numbered in.
        order: the name that cursors along this column carry.
        cursor: where to go on; the beginning, if None.

    Raises:
        CursorError: the cursor is none, is of another listing, or of another history.
    """
    import sqlalchemy as sa

    from debrief.recorder.storage.tables import store

    connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": NUMBERING_LOCK})
    query = sa.select(
        sa.select(store.c.id).scalar_subquery(),
        sa.select(sa.func.coalesce(sa.func.max(column), 0)).scalar_subquery(),
    )
    name, last = connection.execute(query).one()
    connection.commit()
    if cursor is None:
        return Span(name, order, 0, last)
    found = _CURSOR.fullmatch(cursor)
    if found is None or found[2] != order:
        raise CursorError("the cursor", "is none of this listing's", "Start again without one.")
    if found[1] != name:
        raise CursorError(
            "the cursor",
            "is of another database, or of this one before it was restored",
            "Start again without one; sessions keep their ids.",
        )
    return Span(name, order, int(found[3], 16), last)

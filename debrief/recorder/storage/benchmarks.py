"""Benchmarks of adapter versions: the statements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from debrief.errors import InputError
from debrief.recorder.storage import cursors
from debrief.recorder.storage.rows import Benchmark, BenchmarkFilter, NewBenchmark, Page
from debrief.recorder.storage.tables import benchmarks as table

if TYPE_CHECKING:
    from sqlalchemy import Connection

EVERY = BenchmarkFilter()
_GIVEN = NewBenchmark.__struct_fields__


def add(connection: Connection, new: NewBenchmark) -> Benchmark:
    """Keep a figure.

    Raises:
        InputError: its value is not finite.
    """
    if not math.isfinite(new.value):
        raise InputError(f"{new.adapter} {new.version}", f"{new.metric} is {new.value}")
    cursors.numbering(connection)
    statement = sa.insert(table).values({name: getattr(new, name) for name in _GIVEN})
    return _benchmark(connection.execute(statement.returning(*table.c)).mappings().one())


def page(
    connection: Connection, filters: BenchmarkFilter, cursor: str | None, limit: int
) -> Page[Benchmark]:
    """Return the benchmarks after ``cursor``, at most ``limit``.

    Raises:
        CursorError: the cursor is not one of benchmarks of this database.
    """
    span = cursors.settled(connection, table.c.id, "benchmarks", cursor)
    wanted = {name: getattr(filters, name) for name in BenchmarkFilter.__struct_fields__}
    query = (
        sa.select(table)
        .where(*(table.c[name] == value for name, value in wanted.items() if value is not None))
        .where(table.c.id > span.after, table.c.id <= span.last)
        .order_by(table.c.id)
        .limit(limit + 1)
    )
    rows = connection.execute(query).mappings().all()
    items = tuple(_benchmark(row) for row in rows[:limit])
    more = len(rows) > limit
    position = items[-1].id if more else max(span.last, span.after)
    return Page(items=items, cursor=span.cursor(position), more=more)


def _benchmark(row: Any) -> Benchmark:
    return Benchmark(**{name: row[name] for name in Benchmark.__struct_fields__})

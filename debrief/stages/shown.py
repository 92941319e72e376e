"""What a stage shows of a partition: a few words, figures, and tables of counts.

Dagster keeps it as events, which outlive the rows they are about. So no words of a session are in
it: counts are, and a session's id where something failed with it. The pages show the sessions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any

from msgspec import Struct


class ShownTable(Struct, frozen=True):
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Any]]


class ShownPage(Struct, frozen=True):
    """Text in Markdown."""

    text: str


Figures = Mapping[str, int | float | str | ShownTable | ShownPage]


class Shown(Struct, frozen=True):
    """What is shown of a partition."""

    summary: str = ""
    """The partition in a few words."""
    figures: Figures = {}


def counted_by(heading: str, what: str, values: Iterable[object]) -> ShownTable:
    """Return how often each value comes, most first."""
    return ShownTable((heading, what), Counter(map(str, values)).most_common())


def listed(rows: Sequence[Any], *columns: str) -> ShownTable:
    """Return attributes of rows.

    Args:
        rows: of one type.
        columns: two at least, each an attribute or ``heading=attribute``.
    """
    headings, read = _columns(columns)
    return ShownTable(headings, [*map(read, rows)])


def tallied(rows: Iterable[Any], *columns: str) -> ShownTable:
    """Return how many rows have the same attributes, most first; columns as for ``listed``."""
    headings, read = _columns(columns)
    counts = Counter(map(read, rows)).most_common()
    return ShownTable((*headings, "count"), [(*values, count) for values, count in counts])


def _columns(columns: Sequence[str]) -> tuple[list[str], Any]:
    headings = [column.partition("=")[0] for column in columns]
    return headings, attrgetter(*(column.rpartition("=")[2] for column in columns))


def measured(heading: str, values: Iterable[tuple[str, float | None]]) -> ShownTable:
    """Return the values by name: how many there are, their mean, the least and most.

    Args:
        heading: of the names.
        values: names with a value each; None counts as a row without one.
    """
    by_name: dict[str, list[float]] = {}
    missing: Counter[str] = Counter()
    for name, value in values:
        known = by_name.setdefault(name, [])
        if value is None:
            missing[name] += 1
        else:
            known.append(value)
    rows = [
        (name, len(known), fmean(known), min(known), max(known), missing[name])
        if known
        else (name, 0, None, None, None, missing[name])
        for name, known in by_name.items()
    ]
    return ShownTable((heading, "values", "mean", "least", "most", "without one"), rows)

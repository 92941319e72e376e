"""What an asset shows of itself in the UI: tables in Markdown.

Dagster keeps it as events, which outlive the rows they are about. So no words of a session are in
it: counts are, and a session's id where something failed with it. The pages show the sessions.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from operator import attrgetter
from statistics import fmean
from typing import Any

import dagster as dg

from debrief.markdown import plain, shorten
from debrief.markdown import table as markdown_table

PREVIEW_ROWS = 12
_UUID = re.compile(r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_BAR = re.compile(r"(?<!\\)\|")
_BREAKS = re.compile(r"(?<=-)| ")
_CELL = 90
_ON_ONE_LINE = 20
"""Characters of a cell that is not broken at its spaces: times, and pairs of figures."""
_IN_A_WINDOW = 1_000
"""Characters from which on the UI shows Markdown in a window of its own. What is shorter goes into
a cell of the page, which cuts off what is too wide for it."""
_CELL_OF_THE_PAGE = 48
"""Characters that there is room for in it, on a screen 1,280 wide."""
_BETWEEN_COLUMNS = 2


def table(headers: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a Markdown table; long cells are cut, and nothing in a cell can break the table."""
    return markdown_table(headers, ([_cell(value) for value in row] for row in rows))


def preview(
    headers: Sequence[str], rows: Sequence[Sequence[Any]], limit: int = PREVIEW_ROWS
) -> dg.MarkdownMetadataValue:
    """Return the first rows of a table as metadata, and how many more there are."""
    if not rows:
        return dg.MetadataValue.md("*no rows*")
    text = table(headers, rows[:limit])
    if len(rows) > limit:
        text += f"\n\n*and {len(rows) - limit} more*"
    return markdown(text)


def markdown(text: str) -> dg.MarkdownMetadataValue:
    """Return Markdown as metadata, so that the UI cuts none of its tables."""
    return dg.MetadataValue.md(text.ljust(_IN_A_WINDOW) if _is_wide(text) else text)


def listed(
    rows: Sequence[Any], *columns: str, limit: int = PREVIEW_ROWS
) -> dg.MarkdownMetadataValue:
    """Return a preview of attributes of rows.

    Args:
        rows: of one type.
        columns: two at least, each an attribute or ``heading=attribute``.
        limit: how many rows are shown.
    """
    headings = [column.partition("=")[0] for column in columns]
    read = attrgetter(*(column.rpartition("=")[2] for column in columns))
    return preview(headings, [*map(read, rows)], limit)


def tallied(rows: Iterable[Any], *columns: str) -> dg.MarkdownMetadataValue:
    """Return a preview of how many rows have the same attributes, most first.

    Args:
        rows: of one type.
        columns: as for ``listed``.
    """
    headings = [column.partition("=")[0] for column in columns]
    read = attrgetter(*(column.rpartition("=")[2] for column in columns))
    counts = Counter(map(read, rows)).most_common()
    return preview((*headings, "count"), [(*values, count) for values, count in counts])


def measured(heading: str, values: Iterable[tuple[str, float | None]]) -> dg.MarkdownMetadataValue:
    """Return a preview of the values by name: how many there are, their mean, the least and most.

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
    return preview((heading, "values", "mean", "least", "most", "without one"), rows)


def _is_wide(text: str) -> bool:
    """Return whether a table in a text cannot be made narrow enough by breaking its lines."""
    columns: list[int] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            words = [_longest_word(cell) for cell in _BAR.split(line)[1:-1]]
            columns = [max(pair) for pair in zip_longest(columns, words, fillvalue=0)]
        elif sum(columns) + _BETWEEN_COLUMNS * len(columns) > _CELL_OF_THE_PAGE:
            return True
        else:
            columns = []
    return False


def _longest_word(cell: str) -> int:
    return max((len(word) for word in _BREAKS.split(cell.replace("*", ""))), default=0)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    text = shorten(_UUID.sub(r"\1", text), _CELL)
    shown = plain(text)
    return shown.replace(" ", "\u00a0") if len(text) <= _ON_ONE_LINE else shown

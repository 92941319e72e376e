"""What an asset shows of itself in the UI: tables and pictures in Markdown."""

import base64
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any

import dagster as dg

from debrief.lake import Lake
from debrief.markdown import plain, shorten
from debrief.markdown import table as markdown_table
from debrief.summary import titles_of
from debrief.view import links

PREVIEW_ROWS = 12
_UUID = re.compile(r"\b([0-9a-f]{8})(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_BAR = re.compile(r"(?<!\\)\|")
_BREAKS = re.compile(r"(?<=-)| ")
_CELL, _TITLE = 90, 60
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


class Link(str):
    """A cell that leads to a page."""

    __slots__ = ()


def session_links(lake: Lake, week: str, ids: Collection[str]) -> dict[str, Link]:
    """Return a link to the page of each session, where all of its texts are, under its title."""
    pages, titles = links.address(""), titles_of(lake, week, ids)
    found = {}
    for each in ids:
        words = plain(shorten(titles.get(each) or _UUID.sub(r"\1", each), _TITLE))
        found[each] = Link(f"[{words}]({pages}{links.session_path(each)})")
    return found


def picture(png: bytes, words: str) -> dg.MarkdownMetadataValue:
    """Return a picture as metadata, with words for those who cannot see it."""
    data = base64.b64encode(png).decode("ascii")
    return dg.MetadataValue.md(f"![{words}](data:image/png;base64,{data})")


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
    if isinstance(value, Link):
        return value
    if value is None:
        return "–"
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    text = shorten(_UUID.sub(r"\1", text), _CELL)
    shown = plain(text)
    return shown.replace(" ", "\u00a0") if len(text) <= _ON_ONE_LINE else shown

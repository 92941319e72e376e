"""Markdown written by hand: tables, texts that stay plain, long texts cut, front matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from debrief.errors import without_controls

_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_ACTIVE = re.compile(r"[\\`*\[\]|~<>]|&(?=#?\w+;)|_(?![A-Za-z0-9])|(?<![A-Za-z0-9])_")
_AT_THE_START = re.compile(r"\A(\d{1,9}(?=[.)](?:\s|\Z))|(?=#|[-+](?:\s|\Z)|[-=][-= ]*\Z))")
_ADDRESS = re.compile(r"https?(?=:)|\bwww(?=\.)|(?<=[\w.+-])(?=@)", re.IGNORECASE)
_OPEN_BAR = re.compile(r"(?<!\\)\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells may hold inline Markdown, but no bar or line break can break it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def plain(text: str) -> str:
    """Return text from outside so that it is shown as it is, on one line.

    No markup, no HTML, no link and no control character of it is alive. Viewers make links of bare
    addresses, whatever is escaped in them, hence the character without width.

    >>> plain("![x](https://a.example) snake_case")
    '!\\\\[x\\\\](https&#8203;://a.example) snake_case'
    """
    line = _ACTIVE.sub(r"\\\g<0>", " ".join(without_controls(text).split()))
    return _ADDRESS.sub(r"\g<0>&#8203;", _AT_THE_START.sub(r"\1\\", line))


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 turn``, ``2,000 turns``."""
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def interval(
    value: float | None, low: float | None, high: float | None, form: str = ".2f", none: str = ""
) -> str:
    """Return an estimate with its interval, as far as there are any: ``0.65 (0.50 to 0.80)``.

    Args:
        value: the estimate.
        low: where the interval begins.
        high: where it ends.
        form: of the numbers, such as ``+.2f``.
        none: stands for an estimate that there is not.
    """
    if value is None:
        return none
    between = "" if low is None or high is None else f" ({low:{form}} to {high:{form}})"
    return f"{value:{form}}{between}"


def shorten(text: str, width: int) -> str:
    """Return text on one line of at most `width` characters, an ellipsis for what is cut."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def front_matter(text: str) -> tuple[str, str]:
    """Return a text's front matter, without the lines around it, and its body.

    >>> front_matter("---\\ntool: droid\\n---\\nFix it.")
    ('tool: droid\\n', 'Fix it.')
    """
    found = _FRONT_MATTER.match(text)
    return (found[1], text[found.end() :]) if found else ("", text)


def _cell(text: str) -> str:
    return _OPEN_BAR.sub(r"\\|", text.replace("\n", " "))

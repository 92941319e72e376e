"""Markdown written by hand: tables, texts that stay plain, long texts cut, front matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FRONT_MATTER = re.compile(
    r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE
)
_OPEN_BAR = re.compile(r"(?<!\\)\|")


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells may hold inline Markdown, but no bar or line break can break it."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def plain(text: str) -> str:
    """Return text from outside so that it is shown as it is, whatever markup it holds."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    for letter in "\\`|<>[]":
        text = text.replace(letter, f"\\{letter}")
    return text.strip()


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

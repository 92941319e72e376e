"""Leave out of a text the lines that were shown before, and say where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_FEWEST = 6
"""Lines in a row from which on a repetition is left out."""
_LEAST = 120
"""Characters of so many lines; below that a note saves nothing."""
_NUMBER = re.compile(r"^\s*\d+(?:→|\t|[:|] ?|-(?=\s))")
"""What a tool that reads, searches or prints with numbers puts before a line."""
_SIGNS = frozenset("+- ")


class ShownLines:
    """The lines of a session that were shown so far, by runs."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, ...], int] = {}
        """The turn in which each run of lines was shown first."""

    def add(self, text: str, turn: int, *, is_diff: bool = False) -> None:
        """Remember that a text was shown in a turn."""
        for _, run in _runs(text.split("\n"), is_diff):
            self._turns.setdefault(run, turn)

    def without_repeats(self, text: str, *, is_diff: bool = False) -> str:
        """Return a text with a note in place of each run of lines that was shown before.

        Args:
            text: any.
            is_diff: whether lines begin with a sign, which is kept and not compared.
        """
        lines = text.split("\n")
        where: list[int | None] = [None] * len(lines)
        for at, run in _runs(lines, is_diff):
            if (turn := self._turns.get(run)) is not None:
                for each in range(at, at + _FEWEST):
                    where[each] = where[each] if where[each] is not None else turn
        if all(turn is None for turn in where):
            return text
        return "\n".join(_noted(lines, where, is_diff))


def _noted(lines: list[str], where: list[int | None], is_diff: bool) -> Iterator[str]:
    def key(at: int) -> tuple[int | None, str]:
        return where[at], lines[at][:1] if is_diff and where[at] is not None else ""

    for (turn, sign), places in groupby(range(len(lines)), key):
        if turn is None:
            yield from (lines[at] for at in places)
        else:
            count = sum(1 for _ in places)
            yield f"{sign.strip()}({count} lines that stand in turn {turn} already)"


def _runs(lines: list[str], is_diff: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each run of lines with its place; one of a diff has a single sign."""
    plain = [_plain(line, is_diff) for line in lines]
    for at in range(len(lines) - _FEWEST + 1):
        run = tuple(plain[at : at + _FEWEST])
        if sum(map(len, run)) < _LEAST:
            continue
        if is_diff:
            signs = {line[:1] for line in lines[at : at + _FEWEST]}
            if len(signs) > 1 or not signs <= _SIGNS:
                continue
        yield at, run


def _plain(line: str, is_diff: bool) -> str:
    return (line[1:] if is_diff else _NUMBER.sub("", line)).strip()

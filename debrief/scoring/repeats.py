"""Leave out of a text the lines that were shown before, and say where they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_FEWEST = 6
"""Lines in a row from which on a repetition is left out."""
_LEAST = 60
"""Characters of so many lines; below that a note saves nothing."""
_LEAD = re.compile(r"^\s*\d+(?:→|\t|[:|] ?|-(?=\s))|^[>\s]+")
"""What a tool that reads or searches puts before a line, or who quotes it."""


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
    for turn, places in groupby(range(len(lines)), where.__getitem__):
        run = [lines[at] for at in places]
        if turn is None:
            yield from run
            continue
        signs = {line[:1] for line in run} if is_diff else set()
        sign = signs.pop().strip() if len(signs) == 1 else ""
        yield f"{sign}({len(run)} lines that stand in turn {turn} already)"


def _runs(lines: list[str], is_diff: bool) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield each run of lines with its place.

    Lines of a diff that all have one sign are compared without it, so that a file that was read and
    the same lines in a diff are known again.
    """
    plain = [(line[1:] if is_diff else _LEAD.sub("", line)).strip() for line in lines]
    for at in range(len(lines) - _FEWEST + 1):
        places = range(at, at + _FEWEST)
        if is_diff and len({lines[each][:1] for each in places}) > 1:
            run = tuple(lines[each][:1] + plain[each] for each in places)
        else:
            run = tuple(plain[each] for each in places)
        if sum(map(len, run)) >= _LEAST:
            yield at, run

"""Shorten texts at line ends, and say each time how much is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

_LONGEST_LINE = 400
_WORTH_IT = 60
"""Characters under which nothing is left out: to say so would take as many."""
_BEFORE, _BEHIND = 2, 8
"""Lines around one that must not be lost."""


def shortened(text: str, head: int, tail: int) -> str:
    """Return ``text`` with its middle left out, and how much of it, when it is too long.

    It is cut at the ends of lines, or of words where a line is too long for that.
    """
    if len(text) - head - tail <= _WORTH_IT:
        return text
    begin = text[: _end_within(text, head)] if head else ""
    end = text[_start_within(text, len(text) - tail) :] if tail else ""
    parts = (begin.rstrip("\n"), left_out(len(text) - len(begin) - len(end)), end)
    return "\n".join(part for part in parts if part)


def around(text: str, failure: re.Pattern[str], room: int) -> str:
    """Return beginning and end of a long text, and between them the lines that match.

    Args:
        text: what a program printed.
        failure: what the lines have that must not be lost; each comes with those around it.
        room: characters, of which the end gets the half and the beginning an eighth.
    """
    if len(text) - room <= _WORTH_IT:
        return text
    whole = text.split("\n")
    lines = [shortened(line, _LONGEST_LINE, 0).replace("\n", " ") for line in whole]
    first = _fitting(lines, room // 8)
    last = len(lines) - _fitting(reversed(lines[first:]), room // 2)
    kept = {*range(first), *range(last, len(lines))}
    free = room - sum(len(lines[at]) + 1 for at in kept)
    for at in range(first, last):
        if at in kept or not failure.search(lines[at]):
            continue
        window = [near for near in range(at - _BEFORE, at + _BEHIND) if first <= near < last]
        new = [near for near in window if near not in kept]
        free -= sum(len(lines[near]) + 1 for near in new)
        if free < 0:
            break
        kept.update(new)
    if not kept:
        return shortened(text, room // 2, room // 2)
    return "\n".join(_with_gaps(whole, lines, sorted(kept)))


def left_out(characters: int) -> str:
    """Return the words that stand for what is not shown."""
    return f"... ({characters} characters left out)"


def _with_gaps(whole: Sequence[str], lines: Sequence[str], kept: Sequence[int]) -> Iterator[str]:
    following = 0
    for at in [*kept, len(lines)]:
        if at > following:
            yield left_out(sum(len(line) + 1 for line in whole[following:at]))
        if at < len(lines):
            yield lines[at]
        following = at + 1


def _fitting(lines: Iterable[str], room: int) -> int:
    return sum(size <= room for size in accumulate(len(line) + 1 for line in lines))


def _end_within(text: str, most: int) -> int:
    """Return the last good end in what is kept of a beginning: of a line, else of a word."""
    line, word = text.rfind("\n", most // 2, most), text.rfind(" ", most * 2 // 3, most)
    return next((at for at in (line, word) if at >= 0), most)


def _start_within(text: str, least: int) -> int:
    """Return the first good beginning in what is kept of an end: of a line, else of a word."""
    kept = len(text) - least
    line, word = text.find("\n", least, least + kept // 2), text.find(" ", least, least + kept // 3)
    return next((at + 1 for at in (line, word) if at >= 0), least)

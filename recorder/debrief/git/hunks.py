"""Unified hunks, applied strictly, or refused with the line.

Lines end at ``\\n`` and nowhere else; carriage returns, form feeds and what Unicode takes for a
line end are part of a line. Nothing is searched for and nothing is forgiven: a hunk fits at the
very line that it names, or the text is not the one that it was made from.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NO_LINE_END = "\\ No newline at end of file"
_HEAD = re.compile(
    r"-(0|[1-9]\d{0,8})(?:,(0|[1-9]\d{0,8}))?"
    r" \+(0|[1-9]\d{0,8})(?:,(0|[1-9]\d{0,8}))? @@(?: [^\n]*)?",
    re.ASCII,
)

_BODY = frozenset(" -+")
_SIDES = {" ": "-+", "-": "-", "+": "+"}


class HunkError(ValueError):
    """A diff does not add up, or does not fit the text; says where."""


class _Hunk(NamedTuple):
    """A stretch of lines, before and after, without their line ends."""

    old_start: int
    """Lines of the old text before it."""
    new_start: int
    """Lines of the new text before it."""
    old: list[str]
    new: list[str]
    old_open: bool
    """The last of the old lines has no line end."""
    new_open: bool
    """The last of the new lines has no line end."""


def apply_hunks(text: str, diff: str) -> str:
    """Return ``text`` with the hunks of ``diff`` applied, from its first ``@@`` on.

    Raises:
        HunkError: the diff does not add up, or was made from another text.
    """
    if not diff.startswith("@@ "):
        raise HunkError("the diff does not begin with a hunk's @@")
    if not diff.endswith("\n"):
        raise HunkError("the diff's last line has no line end")
    before = text.split("\n")
    is_open = bool(before[-1])
    if not is_open:
        before.pop()
    after: list[str] = []
    done, number = 0, 1
    parts = diff[3:-1].split("\n@@ ")
    for part in parts:
        head, *body = part.split("\n")
        hunk = _hunk(head, body, number)
        where, number = f"line {number}", number + 1 + len(body)
        if (hunk.old_open or hunk.new_open) and part is not parts[-1]:
            raise HunkError(f"line {number}: comes after a line that has no line end")
        if hunk.old_start < done:
            raise HunkError(f"{where}: the hunk begins before the last one ends")
        if hunk.new_start - len(after) != hunk.old_start - done:
            raise HunkError(f"{where}: the two sides do not begin at the same line")
        end = hunk.old_start + len(hunk.old)
        if hunk.old_start > len(before) or before[hunk.old_start : end] != hunk.old:
            raise HunkError(f"{where}: {_misfit(before, hunk)}")
        if hunk.old_open != (is_open and bool(hunk.old) and end == len(before)):
            raise HunkError(f"{where}: disagrees with the text about its last line's end")
        if is_open and end == len(before) and not hunk.old:
            raise HunkError(f"{where}: lines are added behind one without an end")
        if hunk.new_open and end != len(before):
            raise HunkError(f"{where}: a line without an end would not be the last one")
        after += before[done : hunk.old_start] + hunk.new
        done = end
    if done == len(before):
        is_open = hunk.new_open
    after += before[done:]
    return "\n".join(after if is_open else [*after, ""])


def _hunk(head: str, body: list[str], number: int) -> _Hunk:
    """Return a hunk; ``number`` is its head's line in the diff."""
    match = _HEAD.fullmatch(head)
    if match is None:
        raise HunkError(f"line {number}: not the head of a hunk")
    old_start, old_count, new_start, new_count = map(int, match.groups("1"))
    if (old_count and not old_start) or (new_count and not new_start):
        raise HunkError(f"line {number}: lines are counted from 1")
    old_open = new_open = False
    if not _BODY.issuperset([line[:1] for line in body]):
        old_open, new_open = _open_sides(body, number + 1)
        body = [line for line in body if line != NO_LINE_END]
    old = [line[1:] for line in body if line[0] != "+"]
    new = [line[1:] for line in body if line[0] != "-"]
    if len(old) != old_count or len(new) != new_count:
        raise HunkError(
            f"line {number}: the head counts {old_count} lines before and {new_count} after,"
            f" the body has {len(old)} and {len(new)}"
        )
    if old == new and old_open == new_open:
        raise HunkError(f"line {number}: the hunk changes nothing")
    starts = (old_start - bool(old_count), new_start - bool(new_count))
    return _Hunk(*starts, old, new, old_open, new_open)


def _open_sides(body: list[str], number: int) -> tuple[bool, bool]:
    """Return which sides end without a line end; nothing may come after such a line."""
    is_open = {"-": False, "+": False}
    before = ""
    for index, line in enumerate(body, number):
        if line == NO_LINE_END and before:
            is_open |= dict.fromkeys(_SIDES[before], True)
            before = ""
        elif line[:1] in _BODY:
            before = line[0]
            if any(is_open[side] for side in _SIDES[before]):
                raise HunkError(f"line {index}: comes after a line that has no line end")
        else:
            raise HunkError(f"line {index}: neither context nor a line added or removed")
    return is_open["-"], is_open["+"]


def _misfit(before: list[str], hunk: _Hunk) -> str:
    for number, line in enumerate(hunk.old, hunk.old_start):
        if number < len(before) and before[number] != line:
            return f"line {number + 1:,} of the text is not the one that the hunk was made from"
    return f"the text ends before its line {max(hunk.old_start, len(before) + bool(hunk.old)):,}"

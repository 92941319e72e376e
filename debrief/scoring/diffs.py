"""Show a diff by its changed lines: context is cut, and a deleted file is one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from debrief.scoring.shortening import shortened

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(?P<start>\d+)(?:,(?P<lines>\d+))? @@")
_HEADER = ("index ", "--- ", "+++ ", "deleted file mode ", "new file mode ", "old mode ")
_CONTEXT = 1
"""Unchanged lines that stay on each side of a change."""
_REMOVED = 3
"""Removed lines in a row that stay where there is no room for all."""


def compact_diff(text: str, room: int | None = None) -> str:
    """Return a diff with its changed lines and hardly any context.

    Args:
        text: hunks, with or without git's headers, and whatever stands around them.
        room: characters that it may take; None for any number. Where it takes more, all but the
            first lines of what was removed goes first, then the middle.
    """
    found = "\n".join(_compact(text.split("\n")))
    if room is None or len(found) <= room:
        return found
    return shortened("\n".join(_without_removed(found.split("\n"))), room * 2 // 3, room // 3)


def _compact(lines: Sequence[str]) -> Iterator[str]:
    at, in_git = 0, False
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("diff --git "):
            in_git = True
        elif in_git and line.startswith(_HEADER):
            continue
        if not (head := _HUNK.match(line)):
            yield line
            continue
        in_git = False
        end = at
        while end < len(lines) and (lines[end][:1] in ("+", "-", " ", "\\")):
            end += 1
        body, at = lines[at:end], end
        if head["start"] == head["lines"] == "0" and all(each[:1] != "+" for each in body):
            yield f"(deleted, {sum(each[:1] == '-' for each in body)} lines)"
            continue
        yield line
        changed = [place for place, each in enumerate(body) if each[:1] in ("+", "-")]
        near = {place + step for place in changed for step in range(-_CONTEXT, _CONTEXT + 1)}
        yield from (each for place, each in enumerate(body) if place in near)


def _without_removed(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines with all but the first of each run of removed ones as a number."""
    run = 0
    for line in (*lines, ""):
        is_removed = line.startswith("-")
        if run > _REMOVED and not is_removed:
            yield f"- ({run - _REMOVED} more lines removed)"
        run = run + 1 if is_removed else 0
        if run <= _REMOVED:
            yield line

"""Fit what a judge is shown into its context window, and name everything that was left out.

Changes are fitted by whole hunks and files. Least telling goes first: generated files before data,
data before documentation, tests before the code itself; within one kind the largest hunk first,
because it buys the most room.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from msgspec import Struct

from debrief.sessions.generated import is_generated

_HUNK_START = re.compile(r"^@@ ", re.MULTILINE)
_DATA = re.compile(r"\.(jsonl?|csv|tsv|svg|xml|ipynb|sql|txt|html?)$", re.IGNORECASE)
_PROSE = re.compile(r"\.(md|mdx|rst|adoc)$", re.IGNORECASE)
_TEST = re.compile(
    r"(^|/)(tests?|spec|__tests__)/|(^|/)(test_[^/]*|[^/]*([._]test|[._]spec)\.[a-z]+)$",
    re.IGNORECASE,
)
_LISTED = 20
_PLAN_SHARE = 4


class FileDiff(Struct, frozen=True, kw_only=True):
    """The changes of one file, as hunks in the order in which they belong."""

    path: str
    hunks: tuple[str, ...]
    """Each a unified hunk, ``@@ …`` first, ending with a line end."""
    created: bool = False
    printed: str = ""
    """Where git printed it, in words; empty for the session's own edits."""


def split_hunks(patch: str) -> tuple[str, ...]:
    """Split unified hunks without file headers; what comes before the first ``@@`` is dropped."""
    starts = [match.start() for match in _HUNK_START.finditer(patch)]
    ends = [*starts[1:], len(patch)][: len(starts)]
    pieces = (patch[start:end] for start, end in zip(starts, ends, strict=True))
    return tuple(piece if piece.endswith("\n") else piece + "\n" for piece in pieces)


def fit(files: Sequence[FileDiff], room: int) -> tuple[str, list[str]]:
    """Return as many whole hunks as ``room`` takes, in order, and what had to be left out.

    Args:
        files: in the order in which they are shown.
        room: characters for hunks and their file headers; the list of what was left out is not
            counted, and is at most a line a file.

    Returns:
        The text, and a sentence for each file of which hunks are missing.
    """
    hunks = [
        (rank(file.path), len(hunk), at, number)
        for at, file in enumerate(files)
        for number, hunk in enumerate(file.hunks)
    ]
    headers = [len(_header(file)) for file in files]
    shown = [len(file.hunks) for file in files]
    used = sum(size for _, size, _, _ in hunks) + sum(headers)
    dropped: set[tuple[int, int]] = set()
    for _, size, at, number in sorted(hunks, key=lambda hunk: (hunk[0], -hunk[1], hunk[2:])):
        if used <= room:
            break
        dropped.add((at, number))
        shown[at] -= 1
        used -= size + (headers[at] if shown[at] == 0 else 0)
    parts = []
    left_out = []
    for at, file in enumerate(files):
        kept = [hunk for number, hunk in enumerate(file.hunks) if (at, number) not in dropped]
        if kept:
            parts.append(_header(file) + "".join(kept))
        if len(kept) < len(file.hunks):
            missing = len(file.hunks) - len(kept)
            lines = sum(hunk.count("\n") for hunk in file.hunks)
            whole = f"the whole file's changes ({lines} lines)"
            part = f"{missing} of {len(file.hunks)} hunks"
            left_out.append(f"{file.path}: {part if kept else whole}")
    return "\n".join(parts), left_out


def left_out_note(
    left_out: Sequence[str], why: str = "Left out for size, do not count it as missing"
) -> str:
    """Return the paragraph that tells a judge what it does not see; empty when it sees all."""
    if not left_out:
        return ""
    more = [f"- and {len(left_out) - _LISTED} more files"] if len(left_out) > _LISTED else []
    lines = [f"- {sentence}" for sentence in left_out[:_LISTED]] + more
    return f"{why}:\n" + "\n".join(lines) + "\n"


def rank(path: str) -> int:
    """Rank a file by how much its changes tell: 0 least."""
    if is_generated(path):
        return 0
    patterns = (_DATA, _PROSE, _TEST)
    return next((place for place, found in enumerate(patterns, 1) if found.search(path)), 4)


def _header(file: FileDiff) -> str:
    before = "/dev/null" if file.created else f"a/{file.path}"
    printed = f"{file.printed}:\n" if file.printed else ""
    return f"{printed}--- {before}\n+++ b/{file.path}\n"


def bounded_plan(plan: str, files: Sequence[FileDiff], max_size: int) -> str:
    """Return a plan in the room that ``plan_room`` gives it, its middle left out if need be."""
    return cut_middle(plan, plan_room(files, max_size), "characters of the plan left out for size")


def plan_room(files: Sequence[FileDiff], max_size: int) -> int:
    """Return a quarter of the room, or all that the changes leave of it, in characters."""
    return max(max_size // _PLAN_SHARE, max_size - len(fit(files, sys.maxsize)[0]))


def cut_middle(text: str, room: int, what: str = "characters left out") -> str:
    """Return a text in so many characters: its beginning, how much is missing, and its end.

    The end gets a third. Where there is no room even for the note, the note alone is returned.
    """
    if len(text) <= room:
        return text
    keep = max(0, room - len(f"\n[… {len(text)} {what} …]\n"))
    note = f"[… {len(text) - keep} {what} …]"
    head, tail = text[: keep - keep // 3], text[len(text) - keep // 3 :]
    return f"{head}\n{note}\n{tail}" if keep else note


def count_lines(file: FileDiff, sign: str) -> int:
    """Return how many lines of a file's hunks begin with a sign."""
    return sum(line.startswith(sign) for hunk in file.hunks for line in hunk.split("\n"))

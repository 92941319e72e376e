"""Making changes fit into what a judge can take: by whole hunks and files, and never silently.

Least telling goes first: generated files before data, data before documentation, tests before
the code itself; within one kind the largest hunk first, because it buys the most room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

SizeOf = Callable[[str], int]

_HUNK_START = re.compile(r"^@@ ", re.MULTILINE)
_GENERATED = re.compile(
    r"(^|/)(node_modules|vendor|dist|build|\.next|target|__snapshots__)/"
    r"|(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|bun\.lockb?|poetry\.lock|uv\.lock|cargo\.lock"
    r"|go\.sum|gemfile\.lock|composer\.lock)$"
    r"|\.(min\.(js|css)|map|snap|pb\.go|g\.dart)$|_pb2\.pyi?$",
    re.IGNORECASE,
)
_DATA = re.compile(r"\.(jsonl?|csv|tsv|svg|xml|ipynb|sql|txt|html?)$", re.IGNORECASE)
_PROSE = re.compile(r"\.(md|mdx|rst|adoc)$", re.IGNORECASE)
_TEST = re.compile(
    r"(^|/)(tests?|spec|__tests__)/|(^|/)(test_[^/]*|[^/]*([._]test|[._]spec)\.[a-z]+)$",
    re.IGNORECASE,
)
_LISTED = 20


class FileDiff(Struct, frozen=True, kw_only=True):
    """The changes of one file, as hunks in the order in which they belong."""

    path: str
    hunks: tuple[str, ...]
    """Each a unified hunk, ``@@ …`` first, ending with a line end."""
    created: bool = False


class Fitted(Struct, frozen=True, kw_only=True):
    """What fits, and what does not."""

    text: str
    left_out: tuple[str, ...]
    """A sentence a file: whole files, and hunks of files that are shown in part."""


def split_hunks(patch: str) -> tuple[str, ...]:
    """Split unified hunks without file headers; what comes before the first ``@@`` is dropped."""
    starts = [match.start() for match in _HUNK_START.finditer(patch)]
    ends = [*starts[1:], len(patch)][: len(starts)]
    pieces = (patch[start:end] for start, end in zip(starts, ends, strict=True))
    return tuple(piece if piece.endswith("\n") else piece + "\n" for piece in pieces)


def fit(files: Sequence[FileDiff], room: int, size_of: SizeOf = len) -> Fitted:
    """Return as many whole hunks as ``room`` takes, in order, and what had to be left out.

    Args:
        files: in the order in which they are shown.
        room: for hunks and their file headers, in units of ``size_of``; the list of what was
            left out is not counted, and is at most a line a file.
        size_of: measures a text; characters by default.
    """
    hunks = [
        (rank(file.path), size_of(hunk), at, number)
        for at, file in enumerate(files)
        for number, hunk in enumerate(file.hunks)
    ]
    headers = [size_of(_header(file)) for file in files]
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
            left_out.append(_said(file, len(kept)))
    return Fitted(text="\n".join(parts), left_out=tuple(left_out))


def left_out_note(
    left_out: Sequence[str], why: str = "Left out for size, do not count it as missing"
) -> str:
    """Return the paragraph that tells a judge what it does not see; empty when it sees all."""
    if not left_out:
        return ""
    more = [f"- and {len(left_out) - _LISTED} more files"] if len(left_out) > _LISTED else []
    lines = [f"- {sentence}" for sentence in left_out[:_LISTED]] + more
    return f"{why}:\n" + "\n".join(lines) + "\n"


def is_generated(path: str) -> bool:
    """Return whether a file's name says that a program wrote it."""
    return _GENERATED.search(path) is not None


def rank(path: str) -> int:
    """Rank a file by how much its changes tell: 0 least."""
    for place, pattern in enumerate((_GENERATED, _DATA, _PROSE, _TEST)):
        if pattern.search(path):
            return place
    return 4


def _header(file: FileDiff) -> str:
    before = "/dev/null" if file.created else f"a/{file.path}"
    return f"--- {before}\n+++ b/{file.path}\n"


def _said(file: FileDiff, kept: int) -> str:
    missing = len(file.hunks) - kept
    lines = sum(hunk.count("\n") for hunk in file.hunks)
    if kept:
        return f"{file.path}: {missing} of {len(file.hunks)} hunks"
    return f"{file.path}: the whole file's changes ({lines} lines)"

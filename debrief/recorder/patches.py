"""What git tells of the differences between two trees: which there are, and their hunks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from debrief.errors import InputError
from debrief.recorder.objects import LINK
from debrief.recorder.scratch import Scratch

ABSENT = "000000"
_EXACT = (
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--full-index",
    "-U3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)", re.MULTILINE)
_HUNKS = re.compile(rb"^@@ -", re.MULTILINE)
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = dict(zip(b"abtnvfr", b"\a\b\t\n\v\f\r", strict=True))
_MOST_SPELLED = 100_000
"""Bytes of paths that are handed to git one by one."""


class Version(Struct, frozen=True, kw_only=True):
    """A file on one side."""

    mode: str
    """``100644``, ``100755`` or ``120000``."""
    id: str
    text: str
    """Of a symbolic link, its target."""


class FilePair(Struct, frozen=True, kw_only=True):
    """A changed file, both sides of it."""

    path: str
    before: Version | None
    """None where it was created."""
    after: Version | None
    """None where it was deleted."""

    @property
    def updated(self) -> bool:
        """It is there on both sides, and did not go from a file to a link or back: that is a
        deletion and a creation."""
        if not (self.before and self.after):
            return False
        return (self.before.mode == LINK) == (self.after.mode == LINK)


class Difference(Struct, frozen=True, kw_only=True):
    """A path that is not the same in two trees."""

    path: bytes
    old_mode: str
    """``000000`` where the path is not in the tree."""
    new_mode: str
    old_id: str
    new_id: str
    section: bytes
    """What git's patch says of it; of a deletion the head alone."""

    @property
    def shown(self) -> str:
        """The path as text, whatever its bytes are."""
        return self.path.decode("utf-8", "backslashreplace")

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes of the sides that have the path."""
        return tuple(mode for mode in (self.old_mode, self.new_mode) if mode != ABSENT)


def differences_from(scratch: Scratch, base: str) -> Iterator[Difference]:
    """Yield what differs between a tree and our index, in the order of the paths' bytes.

    Raises:
        InputError: git fails, or its answer does not add up.
    """
    output = scratch.git(
        "diff-index", "--cached", "--raw", "-p", "--irreversible-delete", *_EXACT, base
    )
    told, _, patch = output.partition(b"\n\n")
    lines = told.split(b"\n") if told else []
    heads = [line.rstrip(b"\n").partition(b"\t") for line in lines if line]
    sections = iter(_sections(patch))
    for about, _, name in heads:
        old_mode, new_mode, old_id, new_id, status = about[1:].decode().split(" ")
        mine = [next(sections, b"") for _ in range(2 if status == "T" else 1)]
        if not all(mine):
            raise _disagreement(scratch)
        yield Difference(
            path=_unquoted(name),
            old_mode=old_mode,
            new_mode=new_mode,
            old_id=old_id,
            new_id=new_id,
            section=mine[0],
        )
    if next(sections, b""):
        raise _disagreement(scratch)


def hunks_in(pair: FilePair, section: bytes) -> str | None:
    """Return the hunks of an updated file from git's patch of it; None where it holds none.

    Raises:
        InputError: the patch is between other contents.
    """
    if not (pair.before and pair.after) or pair.before.id == pair.after.id:
        return ""
    start = _HUNKS.search(section)
    ids = _INDEX.search(section[: start.start()] if start else section)
    if not ids or (ids[1].decode(), ids[2].decode()) != (pair.before.id, pair.after.id):
        raise InputError(repr(pair.path), "git tells another change of it than it did")
    return section[start.start() :].decode() if start else None


def hunks_of(scratch: Scratch, pairs: Sequence[FilePair], *compared: str) -> Mapping[str, str]:
    """Return the hunks of the updated files among ``pairs``, by path.

    Git is told to take every file for text, whatever its attributes say.

    Args:
        scratch: the open repository.
        pairs: what differs.
        compared: the command that compares the two sides, ending with their names.

    Raises:
        InputError: git fails, or tells other differences than ``pairs``.
    """
    wanted = {pair.path.encode(): pair for pair in pairs if pair.updated}
    if not wanted:
        return {}
    command, *sides = compared
    spelled = sum(map(len, wanted)) <= _MOST_SPELLED
    output = scratch.git(
        "--literal-pathspecs",
        command,
        "--raw",
        "-p",
        "--text",
        "--diff-filter=M",
        *_EXACT,
        *sides,
        *(["--", *(pair.path for pair in wanted.values())] if spelled else []),
    )
    told, _, patch = output.partition(b"\n\n")
    sections = _sections(patch)
    paths = [_unquoted(line.partition(b"\t")[2]) for line in told.split(b"\n") if line]
    if len(paths) != len(sections) or not wanted.keys() <= set(paths):
        raise _disagreement(scratch)
    return {
        wanted[path].path: hunks_in(wanted[path], section) or ""
        for path, section in zip(paths, sections, strict=True)
        if path in wanted
    }


def _sections(patch: bytes) -> list[bytes]:
    starts = [found.start() for found in _SECTION.finditer(patch)]
    return [patch[i:j] for i, j in pairwise([*starts, len(patch)])]


def _unquoted(name: bytes) -> bytes:
    """Return a path from the form that git writes it in where it has special characters."""
    if not name.startswith(b'"'):
        return name
    return _ESCAPE.sub(_character, name[1:-1])


def _character(found: re.Match[bytes]) -> bytes:
    code: bytes = found[1]
    if len(code) == 3:
        return bytes([int(code, 8)])
    return bytes([_ESCAPED.get(code[0], code[0])])


def _disagreement(scratch: Scratch) -> InputError:
    return InputError(
        str(scratch.repository.top), "git's list of changes and its patch do not agree"
    )

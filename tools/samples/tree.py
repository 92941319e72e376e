"""The working tree of a made-up code base, in memory: what is read, searched and edited."""

from __future__ import annotations

import difflib
import re

from msgspec import Struct

from debrief.errors import InputError

_CONTEXT = 3


class Hunk(Struct, frozen=True):
    """One hunk of a change, numbered as in a unified diff."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: tuple[str, ...]
    """Each with its leading space, plus or minus."""


class WorkingTree:
    """Files by path, relative to the repository's root."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = dict(files)

    def read(self, path: str) -> str:
        """Return a file's text; raise InputError when there is no such file."""
        if path not in self.files:
            raise InputError(path, "the code base of this story has no such file")
        return self.files[path]

    def replace(self, path: str, old: str, new: str) -> tuple[str, str]:
        """Replace the one place where ``old`` stands; return the text before and after."""
        before = self.read(path)
        places = before.count(old)
        if places != 1:
            raise InputError(path, f"the text to replace stands in {places} places: {old!r}")
        after = before.replace(old, new)
        self.files[path] = after
        return before, after

    def search(self, pattern: str, under: str = "") -> list[tuple[str, int, str]]:
        """Return path, line number and line wherever ``pattern`` matches, in path order."""
        expression = re.compile(pattern)
        return [
            (path, number, line)
            for path, text in sorted(self.files.items())
            if path.startswith(under)
            for number, line in enumerate(text.split("\n"), 1)
            if expression.search(line)
        ]


def split_change(body: str) -> tuple[str, str]:
    """Split the body of an edit (lines led by space, minus or plus) into old and new text."""
    old: list[str] = []
    new: list[str] = []
    for line in body.split("\n"):
        sign, rest = line[:1] or " ", line[1:]
        if sign not in " -+":
            raise InputError(line, "a line of an edit starts with a space, a minus or a plus")
        if sign != "+":
            old.append(rest)
        if sign != "-":
            new.append(rest)
    return "\n".join(old), "\n".join(new)


def hunks_of(before: str, after: str) -> list[Hunk]:
    """Return the hunks that lead from one text to the other, with three lines of context."""
    old, new = before.splitlines(), after.splitlines()
    found: list[Hunk] = []
    for group in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_grouped_opcodes(
        _CONTEXT
    ):
        lines: list[str] = []
        for tag, a1, a2, b1, b2 in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[a1:a2]]
                continue
            lines += [f"-{line}" for line in old[a1:a2]]
            lines += [f"+{line}" for line in new[b1:b2]]
        a1, b1 = group[0][1], group[0][3]
        a2, b2 = group[-1][2], group[-1][4]
        found.append(Hunk(a1 + 1, a2 - a1, b1 + 1, b2 - b1, tuple(lines)))
    return found

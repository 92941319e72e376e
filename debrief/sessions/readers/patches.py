"""Edits as unified hunks, counted, from whatever notation a tool has for them.

Four notations occur: hunks as a structure, a unified diff with whatever headers, the
``*** Begin Patch`` text of Codex and its relatives, and the bare texts of a replacement or of a
created file. Edits made through a shell are invisible here; a git diff is the better truth where
there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from msgspec import Struct

from debrief.sessions.model import ToolCall
from debrief.sessions.readers.edit_arguments import NEW, OLD, PATHS, WHOLE
from debrief.sessions.readers.values import first_string, mappings

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.*\S.*)$", re.MULTILINE)
_END = re.compile(r"^\*\*\* End Patch", re.MULTILINE)
_WRITTEN = frozenset("+- ")
_MARKS = _WRITTEN | {"", "\r"}
"""What a line within a hunk begins with; some tools cut the blank off an empty context line."""
_CONTEXT = 3
_MOST_COMPARISONS = 4_000_000

Hunk = tuple[str, list[str]]
"""The header and the lines with their marks."""


class FileEdit(Struct, frozen=True, gc=False):
    """What one call did to one file."""

    path: str
    added: int = 0
    removed: int = 0
    patch: str = ""
    """Unified hunks without file headers."""
    estimated: bool = False
    """Worked out from the call's own input, as no result says what it did."""


def lines_of(text: str) -> list[str]:
    """Return the lines of ``text`` as git counts them: a newline at the end begins no line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def created(path: str, content: str, *, estimated: bool = False) -> FileEdit:
    """Return the edit that creates a file: every line of ``content`` is added."""
    return replaced(path, "", content, estimated=estimated)


def deleted(path: str, content: str, *, estimated: bool = False) -> FileEdit:
    """Return the edit that deletes a file: every line of ``content`` is removed."""
    return replaced(path, content, "", estimated=estimated)


def replaced(path: str, old: str, new: str, *, estimated: bool = False) -> FileEdit:
    """Return the edit that puts ``new`` where ``old`` was, as the difference of the two.

    Line numbers count from the beginning of the replaced text: a call does not say where in
    the file that is.
    """
    return from_hunks(path, list(_difference(lines_of(old), lines_of(new))), estimated)


def from_unified(path: str, diff: str) -> FileEdit:
    """Return the edit of a unified diff of one file; file headers are left out."""
    return from_hunks(path, [hunk for _, hunk in _hunks_in(path, diff)])


def edits_of_call(call: ToolCall) -> list[FileEdit]:
    """Return what a call did to each file, in the order of the patch; nothing when it edited none.

    Takes apart what ``joined`` made one of.
    """
    if not call.path or not (call.patch or call.added or call.removed):
        return []
    if "\n+++ " not in call.patch:
        return [FileEdit(call.path, call.added, call.removed, call.patch, call.estimated)]
    files: dict[str, list[Hunk]] = {}
    for path, hunk in _hunks_in(call.path, call.patch):
        files.setdefault(path, []).append(hunk)
    return [from_hunks(path, hunks, call.estimated) for path, hunks in files.items()]


def edit_of_arguments(arguments: dict[str, Any], diff: str = "") -> FileEdit | None:
    """Return the edit that a call's arguments ask for, in the words of any tool; None for none.

    Args:
        arguments: of a call that edits: a patch, a file's content, a replacement, or several.
        diff: of what the call did to one file, which counts before its arguments.
    """
    path = first_string(arguments, *PATHS)
    patches = from_apply_patch(first_string(arguments, "input", "patch", "patchText"))
    if len(patches) > 1:
        return joined(patches)
    path = patches[0].path if patches else path
    edit = from_unified(path, diff)
    if edit.patch or patches:
        return edit if edit.patch else patches[0]
    if path and any(name in arguments for name in WHOLE):
        return created(path, first_string(arguments, *WHOLE), estimated=True)
    lists = (mappings(arguments.get(name)) for name in ("edits", "changes", "replacements"))
    edits: list[FileEdit] = []
    for part in next(filter(None, lists), [arguments]):
        old, new = first_string(part, *OLD), first_string(part, *NEW)
        file = first_string(part, *PATHS) or path
        if file and (old or new):
            edits.append(replaced(file, old, new, estimated=True))
    return joined(edits)


def _hunks_in(path: str, diff: str) -> Iterator[tuple[str, Hunk]]:
    """Yield the hunks of a diff, each with the file that the header before it names.

    Lines belong to a hunk as far as its own header announces them, so that a file's header
    ``+++`` is never taken for an added line, nor an added ``++ x`` for a header.
    """
    old = new = 0
    hunk: Hunk | None = None
    for line in diff.split("\n"):
        mark = line[:1]
        if hunk is not None and mark == "\\":
            hunk[1].append(line)
            continue
        if hunk is not None and (old > 0 or new > 0) and mark in _MARKS:
            old -= mark != "+"
            new -= mark != "-"
            hunk[1].append(line if mark in _WRITTEN else f" {line}")
            continue
        if hunk is not None:
            yield path, hunk
            hunk = None
        match = _HUNK.match(line)
        if match:
            hunk = (line, [])
            old = int(match[2]) if match[2] else 1
            new = int(match[4]) if match[4] else 1
        elif line.startswith("+++ "):
            path = line[4:]
    if hunk is not None:
        yield path, hunk


def from_apply_patch(text: str) -> list[FileEdit]:
    """Return the edits of a ``*** Begin Patch`` text, one a file, in its order.

    The notation has no line numbers: the hunks are numbered as if they followed each other from
    the file's beginning. A deleted file's lines are not in the text, so they do not count.
    """
    edits: list[FileEdit] = []
    _, *sections = _FILE.split(text)
    for kind, path, body in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        lines = lines_of(_END.split(body, maxsplit=1)[0].removeprefix("\n"))
        lines = [line for line in lines if not line.startswith("*** ")]
        if kind == "Add":
            content = "".join(f"{line[1:]}\n" for line in lines if line[:1] == "+")
            edits.append(created(path.strip(), content, estimated=True))
        elif kind == "Delete":
            edits.append(FileEdit(path.strip(), estimated=True))
        else:
            edits.append(from_hunks(path.strip(), list(_numbered(lines)), True))
    return edits


def joined(edits: Iterable[FileEdit]) -> FileEdit | None:
    """Return one call's edits as one: the first file's, other files' behind headers of their own.

    Put behind a header for the first file, the patch is a unified diff of all of them.
    """
    edits = list(edits)
    if len(edits) <= 1:
        return edits[0] if edits else None
    parts: list[str] = []
    path = edits[0].path
    for edit in edits:
        if not edit.patch:
            continue
        if edit.path != path:
            path = edit.path
            parts.append(f"--- {path}\n+++ {path}")
        parts.append(edit.patch)
    return FileEdit(
        edits[0].path,
        sum(edit.added for edit in edits),
        sum(edit.removed for edit in edits),
        "\n".join(parts),
        any(edit.estimated for edit in edits),
    )


def from_hunks(path: str, hunks: Sequence[Hunk], estimated: bool = False) -> FileEdit:
    """Return the edit of a file that hunks make up."""
    added = sum(line[:1] == "+" for _, lines in hunks for line in lines)
    removed = sum(line[:1] == "-" for _, lines in hunks for line in lines)
    patch = "\n".join("\n".join((header, *lines)) for header, lines in hunks)
    return FileEdit(path, added, removed, patch, estimated)


def _numbered(lines: list[str]) -> Iterator[Hunk]:
    sections: list[Hunk] = []
    for line in lines:
        if line.startswith("@@"):
            sections.append((line[2:].strip(), []))
            continue
        if not sections:
            sections.append(("", []))
        sections[-1][1].append(line if line[:1] in ("+", "-", " ") else f" {line}")
    old = new = 1
    for label, written in sections:
        if not written:
            continue
        body = _without_repeats(written)
        before = sum(line[0] != "+" for line in body)
        after = sum(line[0] != "-" for line in body)
        header = f"@@ -{old},{before} +{new},{after} @@"
        yield f"{header} {label}" if label else header, body
        old += before
        new += after


def _without_repeats(body: list[str]) -> list[str]:
    """Return a hunk in which no line is removed and added again: models write such lines."""
    if {line[1:] for line in body if line[0] == "-"}.isdisjoint(
        line[1:] for line in body if line[0] == "+"
    ):
        return body
    before = [line[1:] for line in body if line[0] != "+"]
    after = [line[1:] for line in body if line[0] != "-"]
    if len(before) * len(after) > _MOST_COMPARISONS:
        return body
    shorter: list[str] = []
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        if tag == "equal":
            shorter += [f" {line}" for line in before[i1:i2]]
            continue
        shorter += [f"-{line}" for line in before[i1:i2]]
        shorter += [f"+{line}" for line in after[j1:j2]]
    return shorter if len(shorter) < len(body) else body


def _difference(before: list[str], after: list[str]) -> Iterator[Hunk]:
    if not (before and after):
        if before or after:
            header = f"@@ -{_span(0, len(before))} +{_span(0, len(after))} @@"
            yield header, [f"-{line}" for line in before] + [f"+{line}" for line in after]
        return
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    differing = (len(before) - head - tail) * (len(after) - head - tail)
    if differing > _MOST_COMPARISONS:
        removed, added = before[head : len(before) - tail], after[head : len(after) - tail]
        header = f"@@ -{_span(head, len(removed))} +{_span(head, len(added))} @@"
        yield header, [f"-{line}" for line in removed] + [f"+{line}" for line in added]
        return
    skip = max(0, head - _CONTEXT)
    keep = max(0, tail - _CONTEXT)
    before, after = before[skip : len(before) - keep], after[skip : len(after) - keep]
    for group in SequenceMatcher(None, before, after, False).get_grouped_opcodes(_CONTEXT):
        body: list[str] = []
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                body += [f" {line}" for line in before[i1:i2]]
                continue
            body += [f"-{line}" for line in before[i1:i2]]
            body += [f"+{line}" for line in after[j1:j2]]
        old_from, new_from = group[0][1], group[0][3]
        old_span = _span(skip + old_from, group[-1][2] - old_from)
        yield f"@@ -{old_span} +{_span(skip + new_from, group[-1][4] - new_from)} @@", body


def _common(left: list[str], right: list[str]) -> int:
    pairs = zip(left, right, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _span(start: int, length: int) -> str:
    return f"{start + 1 if length else start},{length}"

"""Edits: which place of which file a call changed."""

from __future__ import annotations

import re

from debrief.offline.model import EditHunk
from debrief.sessions.model import ToolCall
from debrief.sessions.readers.patches import FileEdit, edits_of_call

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SHORT = 8


def edits_of(turn: int, call: ToolCall) -> list[EditHunk]:
    """Return the hunks of a call; none when it edited nothing, failed, or was rejected."""
    if call.status != "ok":
        return []
    edits: list[EditHunk] = []
    for edit in edits_of_call(call):
        found = list(_HUNK.finditer(edit.patch))
        if not found:
            edits.append(_bare(turn, edit))
        for at, match in enumerate(found):
            end = found[at + 1].start() if at + 1 < len(found) else len(edit.patch)
            body = edit.patch[match.end() : end].split("\n")[1:]
            edits.append(_hunk(turn, edit.path, match, body))
    return edits


class Places:
    """Remembers which place was written when, to tell an edit that goes back to one."""

    def __init__(self) -> None:
        self._writers: dict[tuple[str, str], int] = {}
        self._faint: dict[str, list[EditHunk]] = {}
        self._paths: set[str] = set()

    def knows(self, path: str) -> bool:
        """Return whether a file was edited before."""
        return path in self._paths

    def add(self, edit: EditHunk) -> int | None:
        """Remember an edit; return the turn of the earlier one that wrote what it changes.

        An edit goes back when it takes away a significant line that an earlier one wrote. Where
        neither has such lines, line numbers decide; edits further up may have shifted them.
        """
        written, taken = _significant(edit.added_lines), _significant(edit.removed_lines)
        turns = [self._writers.pop((edit.path, line), None) for line in taken]
        earlier = next((turn for turn in turns if turn is not None), None)
        faint = self._faint.setdefault(edit.path, [])
        if earlier is None and not taken and edit.removed:
            earlier = next((old.turn for old in reversed(faint) if _overlap(old, edit)), None)
        if not written and edit.added:
            faint.append(edit)
        self._writers.update({(edit.path, line): edit.turn for line in written})
        self._paths.add(edit.path)
        return earlier


def _significant(lines: tuple[str, ...]) -> list[str]:
    return [line for line in map(str.strip, lines) if len(line) > _SHORT]


def _overlap(earlier: EditHunk, later: EditHunk) -> bool:
    return earlier.start <= later.end + 1 and later.start <= earlier.end + 1


def _hunk(turn: int, path: str, match: re.Match[str], body: list[str]) -> EditHunk:
    added = tuple(line[1:] for line in body if line.startswith("+"))
    removed = tuple(line[1:] for line in body if line.startswith("-"))
    number = int(match[3])
    changed: list[int] = []
    for line in body:
        if line.startswith("+"):
            changed.append(number)
            number += 1
        elif line.startswith("-"):
            changed.append(number)
        elif line.startswith(" "):
            number += 1
    start = changed[0] if changed else number
    return EditHunk(
        turn=turn,
        path=path,
        created=match[1] == "0" and match[2] == "0",
        start=start,
        end=max(changed[-1] if changed else start, start - 1),
        added=len(added),
        removed=len(removed),
        added_lines=added,
        removed_lines=removed,
    )


def _bare(turn: int, call: FileEdit) -> EditHunk:
    """An edit whose source records counts alone."""
    return EditHunk(
        turn=turn,
        path=call.path,
        created=False,
        start=1,
        end=0,
        added=call.added,
        removed=call.removed,
        added_lines=(),
        removed_lines=(),
    )

"""Code growth of Claude Code's edits: from the result object, else from the call's own input."""

from __future__ import annotations

from typing import Any

import orjson

from debrief.sessions.readers.claude_code.records import ToolOutcome
from debrief.sessions.readers.patches import FileEdit, created, joined, replaced
from debrief.sessions.readers.values import mapping, mappings, string

EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write"})


def edit_of(name: str, arguments: str, outcome: Any, written: dict[str, str]) -> FileEdit | None:
    """Return what a successful call did to a file; None when it edited none.

    Args:
        name: the tool's.
        arguments: of the call, as JSON text.
        outcome: the record's ``toolUseResult``: an object, a string, or None.
        written: what earlier calls without a result object wrote, by path; kept up to date, so
            that a file written over is compared with what it held.
    """
    if type(outcome) is ToolOutcome and type(outcome.structuredPatch) is list:
        path = string(outcome.filePath)
        if outcome.structuredPatch:
            return _of_hunks(path, outcome.structuredPatch)
        return created(path, string(outcome.content)) if outcome.type == "create" else None
    return _of_input(name, orjson.loads(arguments), written) if name in EDITING_TOOLS else None


def _of_hunks(path: str, hunks: list[Any]) -> FileEdit:
    parts: list[str] = []
    added = removed = 0
    for hunk in hunks:
        lines = mapping(hunk).get("lines")
        if type(lines) is not list:
            continue
        parts.append(
            f"@@ -{hunk.get('oldStart', 1)},{hunk.get('oldLines', 0)}"
            f" +{hunk.get('newStart', 1)},{hunk.get('newLines', 0)} @@"
        )
        for line in lines:
            if type(line) is str:
                parts.append(line)
                added += line[:1] == "+"
                removed += line[:1] == "-"
    return FileEdit(path, added, removed, "\n".join(parts))


def _of_input(name: str, given: dict[str, Any], written: dict[str, str]) -> FileEdit | None:
    path = string(given.get("file_path"))
    if name == "Write":
        content, before = string(given.get("content")), written.get(path, "")
        written[path] = content
        return replaced(path, before, content, estimated=True)
    parts = mappings(given.get("edits")) if name == "MultiEdit" else [given]
    return joined(_replacement(path, part, written) for part in parts)


def _replacement(path: str, part: dict[str, Any], written: dict[str, str]) -> FileEdit:
    old, new = string(part.get("old_string")), string(part.get("new_string"))
    if old and path in written:
        times = -1 if part.get("replace_all") is True else 1
        written[path] = written[path].replace(old, new, times)
    return replaced(path, old, new, estimated=True)

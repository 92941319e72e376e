"""Code growth of Claude Code's edits: from the result object, else from the call's own input."""

from __future__ import annotations

from typing import Any

import orjson

from debrief.sessions.readers.claude_code.records import Outcome
from debrief.sessions.readers.jsonl import string
from debrief.sessions.readers.patches import Edit, created, joined, replaced

EDITING_TOOLS = frozenset({"Edit", "MultiEdit", "Write"})


def edit_of(name: str, arguments: str, outcome: Any, written: dict[str, str]) -> Edit | None:
    """Return what a successful call did to a file; None when it edited none.

    Args:
        name: the tool's.
        arguments: of the call, as JSON text.
        outcome: the record's ``toolUseResult``: an object, a string, or None.
        written: what earlier calls without a result object wrote, by path; kept up to date, so
            that a file written over is compared with what it held.
    """
    if type(outcome) is Outcome and type(outcome.structuredPatch) is list:
        path = string(outcome.filePath)
        if outcome.structuredPatch:
            return _of_hunks(path, outcome.structuredPatch)
        return created(path, string(outcome.content)) if outcome.type == "create" else None
    if name not in EDITING_TOOLS:
        return None
    return _of_input(name, orjson.loads(arguments), written)


def _of_hunks(path: str, hunks: list[Any]) -> Edit:
    added = removed = 0
    parts: list[str] = []
    for hunk in hunks:
        lines = hunk.get("lines") if type(hunk) is dict else None
        if type(lines) is not list:
            continue
        parts.append(
            f"@@ -{hunk.get('oldStart', 1)},{hunk.get('oldLines', 0)}"
            f" +{hunk.get('newStart', 1)},{hunk.get('newLines', 0)} @@"
        )
        for line in lines:
            if type(line) is not str:
                continue
            parts.append(line)
            if line[:1] == "+":
                added += 1
            elif line[:1] == "-":
                removed += 1
    return Edit(path, added, removed, "\n".join(parts))


def _of_input(name: str, given: dict[str, Any], written: dict[str, str]) -> Edit | None:
    path = string(given.get("file_path"))
    if name == "Write":
        content = string(given.get("content"))
        before = written.get(path, "")
        written[path] = content
        edit: Edit | None = replaced(path, before, content) if before else created(path, content)
    else:
        pairs = given.get("edits") if name == "MultiEdit" else [given]
        edit = joined(
            _replacement(path, pair, written)
            for pair in (pairs if type(pairs) is list else ())
            if type(pair) is dict
        )
        if edit is not None and name == "MultiEdit":
            edit = Edit(path, edit.added, edit.removed, _one_file(edit.patch, path))
    if edit is None:
        return None
    return Edit(edit.path, edit.added, edit.removed, edit.patch, estimated=True)


def _replacement(path: str, pair: dict[str, Any], written: dict[str, str]) -> Edit:
    old, new = string(pair.get("old_string")), string(pair.get("new_string"))
    if old and path in written:
        times = -1 if pair.get("replace_all") is True else 1
        written[path] = written[path].replace(old, new, times)
    return replaced(path, old, new)


def _one_file(patch: str, path: str) -> str:
    """Take away the headers that tell joined edits of several files apart."""
    return patch.replace(f"--- {path}\n+++ {path}\n", "")

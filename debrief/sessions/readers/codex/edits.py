"""What Codex's calls did to files: as its events tell it, else as the patch that it was sent."""

from __future__ import annotations

from typing import Any

from debrief.sessions.readers.jsonl import string
from debrief.sessions.readers.patches import Edit, created, deleted, from_unified
from debrief.sessions.readers.timeline import decoded_arguments


def changes_of(changes: Any) -> list[Edit]:
    """Return the edits of a ``patch_apply_end`` event, one a file."""
    edits: list[Edit] = []
    for path, change in changes.items() if type(changes) is dict else ():
        if type(change) is not dict:
            continue
        kind = change.get("type")
        content = string(change.get("content"))
        if kind == "add":
            edits.append(created(path, content))
        elif kind == "delete":
            edits.append(deleted(path, content))
        else:
            target = string(change.get("move_path")) or path
            edits.append(from_unified(target, string(change.get("unified_diff"))))
    return edits


def patch_in(arguments: str) -> str:
    """Return the patch in a call's arguments, which are JSON text of an object."""
    given = decoded_arguments(arguments)
    return string(given.get("patch")) or string(given.get("input"))

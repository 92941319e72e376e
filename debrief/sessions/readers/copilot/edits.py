"""What Copilot's tools did to files."""

from __future__ import annotations

import re

from debrief.sessions.readers.jsonl import Record, string
from debrief.sessions.readers.patches import (
    Edit,
    created,
    from_apply_patch,
    from_unified,
    joined,
    replaced,
)
from debrief.sessions.readers.timeline import decoded_arguments

_CREATING = frozenset({"create", "create_file", "write_file"})
_REPLACING = frozenset({"edit", "str_replace", "replace_string_in_file", "insert_edit_into_file"})
_EDITING = _CREATING | _REPLACING | {"apply_patch", "str_replace_editor"}
_SECTION = re.compile(r"^diff --git ", re.MULTILINE)
_NEW_NAME = re.compile(r"^\+\+\+ (?:b/)?(.+)$", re.MULTILINE)
_OLD_NAME = re.compile(r"^--- (?:a/)?(.+)$", re.MULTILINE)
_NOWHERE = ("/dev/null", "dev/null")


def edit_of(name: str, arguments: str, result: Record) -> Edit | None:
    """Return what a successful call did; None when it edited nothing.

    The result's own diff counts; where it has none, the call's input is taken.

    Args:
        arguments: of the call, as JSON text of an object.
    """
    if name not in _EDITING:
        return None
    given = decoded_arguments(arguments)
    if name == "apply_patch":
        patch = string(given.get("input")) or string(given.get("patch"))
        return _told(result, "") or joined(from_apply_patch(patch))
    path = string(given.get("path")) or string(given.get("filePath"))
    told = _told(result, path)
    if told is not None or not path:
        return told
    command = string(given.get("command"))
    if name in _CREATING or command == "create":
        content = string(given.get("file_text")) or string(given.get("content"))
        return created(path, content, estimated=True)
    old = string(given.get("old_str")) or string(given.get("oldString"))
    new = string(given.get("new_str")) or string(given.get("newString"))
    return replaced(path, old, new, estimated=True) if old or new else None


def _told(result: Record, path: str) -> Edit | None:
    diff = string(result.get("detailedContent"))
    starts = [match.start() for match in _SECTION.finditer(diff)]
    if not starts:
        return None
    sections = [diff[at:to] for at, to in zip(starts, [*starts[1:], len(diff)], strict=True)]
    if path and len(sections) == 1:
        return from_unified(path, sections[0])
    return joined(from_unified(_name_in(section), section) for section in sections)


def _name_in(section: str) -> str:
    for pattern in (_NEW_NAME, _OLD_NAME):
        match = pattern.search(section)
        if match and match[1].strip() not in _NOWHERE:
            return match[1].strip()
    return ""

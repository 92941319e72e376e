"""Looking before writing: which calls read a file, and which search."""

from __future__ import annotations

import re

from debrief.offline.commands import arguments, simple_commands
from debrief.sessions.model import ToolCall
from debrief.sessions.readers import READERS


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_READS = READERS.tool_names("read") | _set("view_file open_file cat fs_read")
_SEARCHES = READERS.tool_names("search") | _set(
    "search find codebase_search find_file search_files"
)
_SHELL_SEARCHES = _set("rg grep egrep fgrep find fd ag ack ls tree")
_SHELL_READS = _set("cat head tail less bat sed nl")
_PATH_FIELDS = ("file_path", "path", "absolute_path", "filePath", "target_file", "filename")
_SCRIPT = re.compile(r"^[\d,$;\s]*p?$|^s[/|#].*|^\d*$")


def is_search(call: ToolCall, command: str | None) -> bool:
    """Return whether a call searched, by a tool of its own or through a shell."""
    if command is None:
        return call.name.lower() in _SEARCHES
    return any(
        words[0] in _SHELL_SEARCHES or words[:2] == ("git", "grep")
        for words in simple_commands(command)
    )


def read_key(call: ToolCall, command: str | None) -> tuple[str, str] | None:
    """Return path and part of the file that a call read; None when it read none."""
    if command is None:
        if call.name.lower() not in _READS:
            return None
        fields = arguments(call)
        path = next((fields[name] for name in _PATH_FIELDS if fields.get(name)), None)
        if not isinstance(path, str):
            return None
        parts = (fields.get(name) for name in ("offset", "limit", "view_range", "pages"))
        return path, ",".join(str(part) for part in parts if part is not None)
    for words in simple_commands(command):
        if words[0] in _SHELL_READS and "-i" not in words:
            plain = [word for word in words[1:] if not word.startswith("-")]
            files = [word for word in plain if not _SCRIPT.match(word)]
            if len(files) == 1:
                part = " ".join(word for word in words[1:] if word != files[0])
                return files[0], part
    return None

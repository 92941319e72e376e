"""Files of Copilot CLI: one stream of events a session."""

from __future__ import annotations

import re
from pathlib import Path

from debrief.sessions.readers.assembly import Reading, read_lines
from debrief.sessions.readers.copilot.conversion import convert
from debrief.sessions.readers.folders import Head, first_time, is_whole

_START = re.compile(rb'\A[^\n]{0,4000}?(?<!\\)"type"\s*:\s*"session\.(?:start|resume)"')
_DATA = re.compile(rb'(?<!\\)"data"\s*:\s*\{')
_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([^"\\]+)"')
_TALK = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user\.message|assistant\.message|tool\.execution_)')
_EVENTS = "events"


def claims(head: bytes) -> bool:
    """Return whether a file with this beginning is a stream of events that starts a session."""
    return bool(_START.match(head) and _DATA.search(head))


def describe(head: bytes, path: str) -> Head | None:
    """Return what the beginning tells; a session without an id is named after its file."""
    if is_whole(head) and not _TALK.search(head):
        return None
    identity = _ID.search(head)
    return Head(
        id=identity[1].decode(errors="replace") if identity else name_of(path),
        started=first_time(head),
    )


def read_transcript(path: str) -> Reading:
    """Read one stream.

    Raises:
        OSError: it cannot be read.
    """
    return read_lines(path, convert, name_of)


def name_of(path: str) -> str:
    """Return the session's id in the path: the file's name, or its folder's for ``events``."""
    file = Path(path)
    return file.parent.name if file.stem == _EVENTS else file.stem

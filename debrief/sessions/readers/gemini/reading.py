"""Files of Gemini CLI: one JSON document a chat, or in newer versions JSON lines."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.documents import read_document
from debrief.sessions.readers.finding import head_of
from debrief.sessions.readers.folders import Head, first_moment, head_records, is_whole
from debrief.sessions.readers.gemini.conversion import convert
from debrief.sessions.readers.jsonl import JsonLines, Record, string

_ID = re.compile(rb'(?<!\\)"sessionId"\s*:\s*"([^"\\]+)"')
_PROJECT = re.compile(rb'(?<!\\)"projectHash"\s*:\s*"')
_STARTED = re.compile(rb'(?<!\\)"startTime"\s*:\s*"([^"\\]+)"')
_TIME = re.compile(rb'(?<!\\)"timestamp"\s*:\s*"([^"\\]+)"')
_SUBAGENT = re.compile(rb'(?<!\\)"kind"\s*:\s*"subagent"')
_TALK = re.compile(rb'(?<!\\)"type"\s*:\s*"(?:user|gemini)"')
_PREAMBLE = re.compile(
    rb'\A\s*\{\s*"(?:sessionId|projectHash|lastUpdated|messages|startTime|kind)"'
)
_MESSAGE = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_FIRST = 4096


def claims(head: bytes) -> bool:
    """Return whether a file with this beginning is a chat: it names its session and project."""
    return bool(_PREAMBLE.match(head) and _ID.search(head) and _PROJECT.search(head))


def describe(head: bytes, path: str) -> Head | None:
    """Return what the beginning tells; a session without an id is named after its file."""
    if is_whole(head) and not _TALK.search(head):
        return None
    identity = _ID.search(head)
    root = _MESSAGE.search(head)
    times = [*_STARTED.findall(head), *_TIME.findall(head)]
    return Head(
        id=identity[1].decode(errors="replace") if identity else Path(path).stem,
        started=first_moment(time.decode(errors="replace") for time in times),
        parent=_parent(path) if _SUBAGENT.search(head[:_FIRST]) else "",
        root=root[1].decode(errors="replace") if root else "",
    )


def read_transcript(path: str) -> Reading:
    """Read one chat.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no chat.
    """
    reading = Reading(path)
    header, messages, rewound = _read_lines(reading) if _is_lines(path) else _read_document(reading)
    facts = reading.facts
    facts.id = string(header.get("sessionId")) or Path(path).stem
    facts.title = string(header.get("summary"))
    facts.cwd = _directory(header, path)
    facts.is_subagent = header.get("kind") == "subagent"
    facts.parent = _parent(path) if facts.is_subagent else ""
    facts.see(first_moment([header.get("startTime")]))
    convert(messages, rewound, reading)
    return reading


def _is_lines(path: str) -> bool:
    """Tell JSON lines from one document, which may stand in a ``.jsonl`` file too."""
    beginning = b"\n".join(head_of(path).split(b"\n", 2)[:2])
    return bool(head_records(beginning))


def _read_document(reading: Reading) -> tuple[Record, list[Any], frozenset[int]]:
    document, ref, problems = read_document(reading.path)
    reading.references.append(ref)
    reading.problems += problems
    messages = document.get("messages")
    return document, messages if type(messages) is list else [], frozenset()


def _read_lines(reading: Reading) -> tuple[Record, list[Any], frozenset[int]]:
    """Read the layout in which messages are appended, written again, and taken back."""
    header: Record = {}
    messages: list[Any] = []
    places: dict[str, int] = {}
    rewound: set[int] = set()
    lines = JsonLines(reading.path)
    for record in lines:
        change = record.get("$set")
        if type(change) is dict:
            header.update(change)
        elif "$rewindTo" in record:
            place = places.get(string(record["$rewindTo"]))
            if place is not None:
                rewound.update(range(place, len(messages)))
        elif "sessionId" in record and "type" not in record:
            listed = record.get("messages")
            messages += listed if type(listed) is list else []
            header = {**header, **record}
        else:
            place = places.get(string(record.get("id")))
            if place is not None and place not in rewound:
                messages[place] = record
                continue
            places[string(record.get("id"))] = len(messages)
            messages.append(record)
    reading.take(lines)
    return header, messages, frozenset(rewound)


def _directory(header: Record, path: str) -> str:
    directories = header.get("directories")
    if type(directories) is list and directories:
        return string(directories[0])
    beside = Path(path).parent.parent / ".project_root"
    try:
        return beside.read_text(errors="replace").strip() if beside.is_file() else ""
    except OSError:
        return ""


def _parent(path: str) -> str:
    """Return the session that a subagent's chat is filed under; empty when it is not told."""
    folder = Path(path).parent.name
    return "" if folder == "chats" else folder

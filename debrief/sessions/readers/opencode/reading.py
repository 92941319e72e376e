"""Files of OpenCode: an exported document, or a store of one file a session, message and part."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.sessions.model import Problem
from debrief.sessions.readers.assembly import Reading
from debrief.sessions.readers.documents import read_document
from debrief.sessions.readers.finding import head_of
from debrief.sessions.readers.folders import Head, is_whole
from debrief.sessions.readers.jsonl import Record, load_json, mend, string
from debrief.sessions.readers.moments import moment
from debrief.sessions.readers.opencode.conversion import convert, take_info, time_of

_EXPORT = re.compile(rb'\A\s*\{\s*"info"\s*:\s*\{')
_SESSION_IN_EXPORT = re.compile(rb'(?<!\\)"(?:directory|projectID|version)"\s*:\s*"')
_MESSAGE = re.compile(rb'(?<!\\)"sessionID"\s*:\s*"([^"\\]+)"')
_ROLE = re.compile(rb'(?<!\\)"role"\s*:\s*"(?:user|assistant)"')
_SESSION = re.compile(rb'(?<!\\)"(?:projectID|directory)"\s*:\s*"')
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parentID"\s*:\s*"([^"\\]+)"')
_CREATED = re.compile(rb'(?<!\\)"created"\s*:\s*(\d{10,16})')
_EMPTY_LIST = re.compile(rb'"messages"\s*:\s*\[\s*\]')


class StoredSession(Struct, frozen=True):
    """One session of a store."""

    path: str
    """The session's own record, or its first message where that is missing."""
    head: Head
    files: tuple[str, ...] = ()
    """Messages and parts."""


def is_export(head: bytes) -> bool:
    """Return whether a file with this beginning is an exported session."""
    return bool(_EXPORT.match(head) and _SESSION_IN_EXPORT.search(head))


def describe_export(head: bytes, path: str) -> Head | None:
    """Return what the beginning of an export tells; None when it holds no message."""
    if is_whole(head) and _EMPTY_LIST.search(head):
        return None
    text = head.decode(errors="replace")
    info: Any = None
    try:
        info = json.JSONDecoder(strict=False).raw_decode(text, text.index("{", 1))[0]
    except (ValueError, RecursionError):
        return _roughly(head, path)
    return _head_of_info(mend(info), path)


def _head_of_info(info: Any, path: str) -> Head:
    record: Record = info if type(info) is dict else {}
    return Head(
        id=string(record.get("id")) or Path(path).stem,
        started=time_of(record, "created"),
        parent=string(record.get("parentID")),
    )


def _roughly(head: bytes, path: str) -> Head:
    identity, parent, created = _ID.search(head), _PARENT.search(head), _CREATED.search(head)
    return Head(
        id=identity[1].decode(errors="replace") if identity else Path(path).stem,
        started=moment(int(created[1])) if created else None,
        parent=parent[1].decode(errors="replace") if parent else "",
    )


def stored_sessions(paths: Iterable[str]) -> Iterator[StoredSession]:
    """Yield the sessions of the stores that ``paths`` belong to, told by their folders' names."""
    records: dict[tuple[str, str], str] = {}
    messages: dict[tuple[str, str], list[str]] = {}
    parts: dict[tuple[str, str], list[str]] = {}
    for path in sorted(paths):
        pieces = path.rsplit("/", 3)
        if len(pieces) != 4:
            continue
        store, kind, owner, name = pieces
        if kind == "session":
            records[store, name.removesuffix(".json")] = path
        elif kind == "message":
            messages.setdefault((store, owner), []).append(path)
        elif kind == "part":
            parts.setdefault((store, owner), []).append(path)
    for key in sorted({*records, *messages}):
        store, session = key
        own = [path for path in messages.get(key, ()) if _is_message(head_of(path))]
        files = [*own]
        for path in own:
            files += parts.get((store, Path(path).stem), ())
        record = records.get(key)
        if record is not None and _SESSION.search(head_of(record)):
            head = _roughly(head_of(record), record)
            yield StoredSession(record, head, tuple(files))
        elif own:
            yield StoredSession(own[0], Head(id=_owner(own[0]) or session), tuple(files[1:]))


def _is_message(head: bytes) -> bool:
    return bool(_MESSAGE.search(head) and _ROLE.search(head))


def _owner(path: str) -> str:
    found = _MESSAGE.search(head_of(path))
    return found[1].decode(errors="replace") if found else ""


def read_export(path: str) -> Reading:
    """Read an exported session.

    Raises:
        OSError: it cannot be read.
        ValueError: it holds no session.
    """
    reading = Reading(path)
    document, ref, problems = read_document(path)
    reading.references.append(ref)
    reading.problems += problems
    info = document.get("info")
    take_info(info if type(info) is dict else {}, reading)
    reading.facts.id = reading.facts.id or Path(path).stem
    told = document.get("messages")
    messages: list[tuple[Record, list[Any]]] = []
    for place, message in enumerate(told if type(told) is list else (), 1):
        inner = message.get("info") if type(message) is dict else None
        if type(inner) is not dict:
            reading.report(0, f"message {place} tells nothing about itself")
            continue
        parts = message.get("parts")
        messages.append((inner, parts if type(parts) is list else []))
    convert(messages, reading)
    return reading


def read_stored(path: str, files: Iterable[str]) -> Reading:
    """Read a session of a store from its own record and the files of its messages and parts.

    Raises:
        OSError: ``path`` cannot be read.
        ValueError: ``path`` holds nothing.
    """
    reading = Reading(path)
    records: list[Record] = []
    parts: dict[str, list[Record]] = {}
    first, ref, problems = load_json(path)
    reading.references.append(ref)
    reading.problems += problems
    if type(first) is not dict:
        raise ValueError("holds no JSON object")
    if "role" in first:
        records.append(first)
    else:
        take_info(first, reading)
    for file in files:
        record = _load(file, reading)
        if record is None:
            continue
        if "role" in record:
            records.append(record)
        else:
            owner = string(record.get("messageID")) or Path(file).parent.name
            parts.setdefault(owner, []).append(record)
    records.sort(key=lambda record: (_created(record), string(record.get("id"))))
    if records and not reading.facts.id:
        reading.facts.id = string(records[0].get("sessionID"))
        reading.report(0, "the session's own record is missing: folder and title are not known")
    convert([(record, parts.get(string(record.get("id")), [])) for record in records], reading)
    return reading


def _created(record: Record) -> float:
    at = time_of(record, "created")
    return at.timestamp() if at is not None else 0.0


def _load(path: str, reading: Reading) -> Record | None:
    try:
        record, ref, problems = load_json(path)
    except (OSError, ValueError) as error:
        reading.problems.append(Problem(path=path, line=0, reason=f"cannot be read: {error}"))
        return None
    reading.references.append(ref)
    reading.problems += problems
    return record if type(record) is dict else None

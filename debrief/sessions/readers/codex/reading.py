"""Files of Codex: rollouts, one a session."""

from __future__ import annotations

import re
from pathlib import Path

from debrief.sessions.readers.assembly import Reading, read_lines
from debrief.sessions.readers.codex.conversion import convert, parent_of
from debrief.sessions.readers.folders import Head, first_time, head_records, is_whole
from debrief.sessions.readers.jsonl import Record, string

_WRAPPED = re.compile(
    rb'(?<!\\)"type"\s*:\s*"(?:session_meta|turn_context|response_item|event_msg|compacted)"'
)
_PAYLOAD = re.compile(rb'(?<!\\)"payload"\s*:\s*\{')
_BARE = re.compile(rb'\A\s*\{"id"\s*:\s*"[^"]*",\s*"timestamp"\s*:\s*"[^"]*",\s*"instructions"\s*:')
_ID = re.compile(r'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(r'(?<!\\)"parent_thread_id"\s*:\s*"([^"\\]+)"')
_BOOKKEEPING = frozenset({"session_meta", "turn_context", "compacted", "world_state"})
_ID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


def claims(head: bytes) -> bool:
    """Return whether a file with this beginning is a rollout, of the wrapped or the bare layout."""
    first = head.lstrip()
    first = first[: first.find(b"\n")] if b"\n" in first else first
    if _WRAPPED.search(first) and _PAYLOAD.search(first):
        return True
    return _BARE.match(head) is not None


def describe(head: bytes, path: str) -> Head | None:
    """Return what the beginning tells; a session without an id is named after its file."""
    records = head_records(head)
    if not records:
        return _describe_cut(head, path)
    if is_whole(head) and not any(_tells(record) for record in records):
        return None
    meta = next((_meta(record) for record in records if _meta(record)), {})
    return Head(
        id=string(meta.get("id")) or id_in_name(path),
        started=first_time(head),
        parent=parent_of(meta),
    )


def _describe_cut(head: bytes, path: str) -> Head | None:
    """Describe a rollout whose first record, which may hold long instructions, goes on."""
    if is_whole(head):
        return None
    text = head.decode(errors="replace")
    identity, parent = _ID.search(text), _PARENT.search(text)
    return Head(
        id=identity[1] if identity else id_in_name(path),
        started=first_time(head),
        parent=parent[1] if parent else "",
    )


def read_transcript(path: str) -> Reading:
    """Read one rollout.

    Raises:
        OSError: it cannot be read.
    """
    return read_lines(path, convert, id_in_name)


def id_in_name(path: str) -> str:
    """Return the session's id that a rollout's name ends with, else the name."""
    stem = Path(path).stem
    found = _ID_IN_NAME.findall(stem)
    return found[-1] if found else stem


def _meta(record: Record) -> Record:
    if record.get("type") == "session_meta":
        payload = record.get("payload")
        return payload if type(payload) is dict else {}
    bare = record.get("type") is None and "id" in record and "timestamp" in record
    return record if bare else {}


def _tells(record: Record) -> bool:
    kind = string(record.get("type"))
    return bool(kind) and kind not in _BOOKKEEPING

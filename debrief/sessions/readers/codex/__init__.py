"""Codex CLI: ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``, of both layouts.

A person's prompts are ``user_message`` events; the other user items are the tool's context.
"""

from __future__ import annotations

import re
from pathlib import Path

from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import Peek, ToolNames
from debrief.sessions.readers.codex.conversion import convert, parent_of
from debrief.sessions.readers.jsonl import JsonRecord
from debrief.sessions.readers.kit import (
    TranscriptReader,
    first_time,
    head_records,
    is_whole,
    text_in,
)
from debrief.sessions.readers.values import mapping, string

_WRAPPED = re.compile(
    rb'(?<!\\)"type"\s*:\s*"(?:session_meta|turn_context|response_item|event_msg|compacted)"'
)
_PAYLOAD = re.compile(rb'(?<!\\)"payload"\s*:\s*\{')
_BARE = re.compile(rb'\A\s*\{"id"\s*:\s*"[^"]*",\s*"timestamp"\s*:\s*"[^"]*",\s*"instructions"\s*:')
_ID = re.compile(rb'(?<!\\)"id"\s*:\s*"([^"\\]+)"')
_PARENT = re.compile(rb'(?<!\\)"parent_thread_id"\s*:\s*"([^"\\]+)"')
_BOOKKEEPING = frozenset({"", "session_meta", "turn_context", "compacted", "world_state"})
_ID_IN_NAME = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")


class CodexReader(TranscriptReader):
    """Codex's rollouts, one a session."""

    source = "codex"
    tool = "codex"
    tools = ToolNames(
        shell="shell exec_command local_shell shell_command container.exec unified_exec"
    )
    home_folders = (".codex/sessions", ".codex/archived_sessions")

    def claims(self, head: bytes) -> bool:
        """Return whether a beginning is a rollout's, of the wrapped or the bare layout."""
        first = head.lstrip().partition(b"\n")[0]
        return bool((_WRAPPED.search(first) and _PAYLOAD.search(first)) or _BARE.match(head))

    def describe(self, head: bytes, path: str) -> Peek | None:
        """Return what the beginning says; a session without an id is named after its file."""
        records = head_records(head)
        has_content = any(string(each.get("type")) not in _BOOKKEEPING for each in records)
        if is_whole(head) and not has_content:
            return None
        meta = next((meta for record in records if (meta := _meta(record))), {})
        identity, parent = string(meta.get("id")), parent_of(meta)
        if not records:  # the first record, which may hold long instructions, goes on
            identity, parent = text_in(_ID, head), text_in(_PARENT, head)
        identity = identity or _id_in_name(path)
        return Peek(session_id=identity, started=first_time(head), parent=parent)

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one rollout."""
        draft = TranscriptDraft(path)
        draft.read_lines(convert)
        draft.id = draft.id or _id_in_name(path)
        return draft


READER = CodexReader()


def _id_in_name(path: str) -> str:
    """Return the session's id that a rollout's name ends with, else the name."""
    stem = Path(path).stem
    ids: list[str] = _ID_IN_NAME.findall(stem)
    return ids[-1] if ids else stem


def _meta(record: JsonRecord) -> JsonRecord:
    if record.get("type") == "session_meta":
        return mapping(record.get("payload"))
    bare = record.get("type") is None and "id" in record and "timestamp" in record
    return record if bare else {}

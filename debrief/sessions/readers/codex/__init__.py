"""Codex CLI: ``~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl``, of both layouts."""

from __future__ import annotations

from debrief.sessions.readers.codex.reading import claims, describe, read_transcript
from debrief.sessions.readers.kit import TranscriptReader

READER = TranscriptReader(
    source="codex",
    tool="codex",
    folders=(".codex/sessions", ".codex/archived_sessions"),
    suffixes=(".jsonl",),
    claims=claims,
    describe=describe,
    read=read_transcript,
)
"""A person's prompts are ``user_message`` events; the other user items are the tool's context."""

"""Gemini CLI: ``~/.gemini/tmp/<project>/chats/session-*.json``, newer ones ``.jsonl``."""

from __future__ import annotations

from debrief.sessions.readers.gemini.reading import claims, describe, read_transcript
from debrief.sessions.readers.kit import TranscriptReader

READER = TranscriptReader(
    source="gemini",
    tool="gemini-cli",
    folders=(".gemini/tmp",),
    suffixes=(".json", ".jsonl"),
    claims=claims,
    describe=describe,
    read=read_transcript,
)
"""A chat does not name its folder; a ``.project_root`` file beside the chats does, where it is."""

"""Copilot CLI: ``~/.copilot/session-state/<id>/events.jsonl``, or ``<id>.jsonl``."""

from __future__ import annotations

from debrief.sessions.readers.copilot.reading import claims, describe, read_transcript
from debrief.sessions.readers.kit import TranscriptReader

READER = TranscriptReader(
    source="copilot",
    tool="copilot-cli",
    folders=(".copilot/session-state",),
    suffixes=(".jsonl",),
    claims=claims,
    describe=describe,
    read=read_transcript,
)
"""Subagents' events stand in the same stream; tokens are told when the session shuts down."""

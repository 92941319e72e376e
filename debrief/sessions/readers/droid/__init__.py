"""Factory droid: ``~/.factory/sessions/<slug>/<id>.jsonl`` with ``<id>.settings.json``."""

from __future__ import annotations

from debrief.sessions.readers.droid.reading import (
    SUFFIX,
    claims,
    describe,
    read_transcript,
    settings_beside,
)
from debrief.sessions.readers.kit import TranscriptReader

READER = TranscriptReader(
    source="droid",
    tool="droid",
    folders=(".factory/sessions",),
    suffixes=(SUFFIX,),
    claims=claims,
    describe=describe,
    read=read_transcript,
    beside=settings_beside,
)
"""Tokens stand in the settings alone; a subagent's transcript names its parent's session."""

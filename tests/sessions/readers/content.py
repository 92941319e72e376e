"""Transcripts written for a test, the sessions of a folder, and what one holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session, ToolCall, Turn
from debrief.sessions.readers.base import Reader
from debrief.sessions.readers.files import walk


def write_records(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def read_all(reader: Reader, folder: Path) -> list[Session]:
    return [reader.read(transcript) for transcript in reader.find(walk(folder))]


def prompts_of(session: Session) -> list[str]:
    return [turn.prompt for turn in session.turns if turn.number]


def texts_of(session: Session) -> list[str]:
    return [message.text for turn in session.turns for message in turn.messages]


def calls_of(session: Session) -> list[ToolCall]:
    return [call for turn in session.turns for each in turn.messages for call in each.calls]


def deeds_of(turn: Turn) -> list[tuple[str, str]]:
    return [(deed.kind, deed.text) for deed in turn.interventions]


def told_in(session: Session) -> list[tuple[str, str]]:
    """Return who told the model what before its messages, beside the person's words."""
    messages = (message for turn in session.turns for message in turn.messages)
    return [(each.said_by, each.text) for message in messages for each in message.context]

"""Transcripts written for a test, the sessions of a folder, and what one holds."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import zstandard

from debrief.sessions.model import Session, ToolCall
from debrief.sessions.readers.base import Reader
from debrief.sessions.readers.files import walk


def lay(source: Path, target: Path) -> None:
    """Copy transcripts, and make databases of SQL text."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in list(target.rglob("*.sql")):
        with sqlite3.connect(path.with_suffix("")) as connection:
            connection.create_function("zstd", 1, lambda text: zstandard.compress(text.encode()))
            connection.executescript(path.read_text())
        connection.close()
        path.unlink()


def write_records(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read_all(reader: Reader, folder: Path) -> list[Session]:
    return [reader.read(transcript) for transcript in reader.find(walk(folder))]


def prompts_of(session: Session) -> list[str]:
    return [turn.prompt for turn in session.turns if turn.number]


def texts_of(session: Session) -> list[str]:
    return [message.text for turn in session.turns for message in turn.messages]


def calls_of(session: Session) -> list[ToolCall]:
    return [call for turn in session.turns for message in turn.messages for call in message.calls]

"""Cursor's own database, as Cursor writes it: the rows of 2025, and those of its version 3."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.cursor import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import prompts_of, texts_of, write_records

ID, CHILD = "22b57e58-4764-45d1-8303-21d00aaa6ec5", "59c0d1aa-1c67-4e17-8954-0b6e2b3322f1"
START = 1_772_445_600_000


class Database:
    """The database of a Cursor that is running."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.connection = sqlite3.connect(folder / "state.vscdb", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(
            "CREATE TABLE cursorDiskKV (key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"
        )

    def put(self, key: str, value: Any) -> None:
        text = value if isinstance(value, str | None) else json.dumps(value)
        self.connection.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", (key, text))

    def session(self, id: str, *bubbles: dict[str, Any], **about: Any) -> None:
        heads = []
        for number, bubble in enumerate(bubbles):
            name = f"b{number}"
            heads.append({"bubbleId": name, "type": bubble["type"]})
            self.put(f"bubbleId:{id}:{name}", {"bubbleId": name, **bubble})
        listed = {"createdAt": START, "fullConversationHeadersOnly": heads, **about}
        self.put(f"composerData:{id}", {"composerId": id, **listed})


def asked(text: str, **more: Any) -> dict[str, Any]:
    return {"type": 1, "text": text, **more}


def said(text: str = "", thought: str = "", **more: Any) -> dict[str, Any]:
    return {"type": 2, "text": text, "thinking": {"text": thought}, **more}


def test_a_session_that_is_a_transcript_too_is_read_from_the_database(tmp_path: Path) -> None:
    database = Database(tmp_path / "globalStorage")
    database.session(ID, asked("Go."), said("Gone."))
    place = tmp_path / "projects" / "home-ann" / "agent-transcripts" / ID
    blocks = [{"type": "text", "text": "<user_query>\nGo.\n</user_query>"}]
    write_records(place / f"{ID}.jsonl", {"role": "user", "message": {"content": blocks}})
    found = list(READER.find(walk(tmp_path)))
    failures: list[Exception] = []

    def failed(transcript: Transcript, error: Exception) -> None:
        failures.append(error)

    session = READER.read_all(found, failed)
    assert session is not None
    assert (len(found), prompts_of(session), texts_of(session)) == (2, ["Go."], ["Gone."])
    database.connection.execute("UPDATE cursorDiskKV SET value = 'x' WHERE key LIKE 'bubble%'")
    session = READER.read_all(found, failed)
    assert session is not None
    assert (prompts_of(session), len(failures)) == (["Go."], 1)

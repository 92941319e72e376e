"""Transcripts of Factory droid, record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session
from debrief.sessions.readers.droid import READER
from debrief.sessions.readers.files import walk

START = {
    "type": "session_start",
    "id": "s1",
    "title": "fix the retry",
    "sessionTitle": "New Session",
    "version": 2,
    "cwd": "/home/ann/shop/.debrief/worktrees/retry-queue",
}
SETTINGS = {
    "model": "gpt-mini",
    "tokenUsage": {
        "inputTokens": 900,
        "outputTokens": 50,
        "cacheCreationTokens": 7,
        "cacheReadTokens": 4000,
        "thinkingTokens": 20,
    },
}


def message(number: int, role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": more.pop("id", f"m{number}"),
        "timestamp": f"2026-03-02T10:00:{number:02d}.000Z",
        "message": {"role": role, "content": content},
        **more,
    }


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def use(name: str, call: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def result(call: str, content: Any, is_error: bool = False) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": content, "is_error": is_error}


def write(folder: Path, records: list[Any], name: str = "s1", settings: Any = SETTINGS) -> Path:
    path = folder / f"{name}.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records) + "\n")
    if settings is not None:
        (folder / f"{name}.settings.json").write_text(json.dumps(settings))
    return path


def read_all(folder: Path) -> list[Session]:
    return [READER.read(transcript) for transcript in READER.find(walk(folder))]


def read_one(folder: Path, records: list[Any], settings: Any = SETTINGS) -> Session:
    write(folder, records, settings=settings)
    (session,) = read_all(folder)
    return session


def read_turn(folder: Path, *records: Any) -> Session:
    """Read a session in which a person says "go", and then what ``records`` tell happens."""
    return read_one(folder, [START, message(1, "user", "go"), *records])

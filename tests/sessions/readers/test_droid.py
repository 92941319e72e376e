"""Factory droid's transcripts, with their settings and their subagents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.readers.droid import READER
from debrief.sessions.readers.files import walk
from tests.sessions.readers.content import (
    write_records,
)

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


def write(folder: Path, records: list[Any], name: str = "s1", settings: Any = SETTINGS) -> Path:
    if settings is not None:
        (folder / f"{name}.settings.json").write_text(json.dumps(settings))
    return write_records(folder / f"{name}.jsonl", *records)


def test_two_sessions_that_call_each_other_their_parent_are_both_found(tmp_path: Path) -> None:
    for name, other in (("s1", "s2"), ("s2", "s1")):
        records = [{**START, "id": name, "callingSessionId": other}, message(1, "user", name)]
        write(tmp_path, records, name=name)
    covered = [
        path for each in READER.find(walk(tmp_path)) for path in (each.path, *each.companions)
    ]
    assert {str(tmp_path / "s1.jsonl"), str(tmp_path / "s2.jsonl")} <= set(covered)

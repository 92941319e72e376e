"""Goose's database, while the program writes it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from debrief.sessions.readers.files import walk
from debrief.sessions.readers.goose import READER
from tests.sessions.readers.content import lay

EXAMPLE = Path(__file__).parent / "examples/goose/what-was-said-called-and-delegated/input"


def test_what_is_written_to_a_subagent_changes_its_session(tmp_path: Path) -> None:
    lay(EXAMPLE, tmp_path)
    program = sqlite3.connect(tmp_path / "sessions.db", isolation_level=None)
    program.execute("PRAGMA journal_mode = WAL")
    (before,) = READER.find(walk(tmp_path))
    (agent,) = READER.read(before).subagents
    program.execute(
        "INSERT INTO messages (session_id, role, content_json, created_timestamp)"
        ' VALUES (\'20260302_2\', \'assistant\', \'[{"type": "text", "text": "wait"}]\', 1772445600)'
    )
    (after,) = READER.find(walk(tmp_path))
    assert before.stamp != after.stamp
    (later,) = READER.read(after).subagents
    assert [message.text for message in later.messages[len(agent.messages) :]] == ["wait"]
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["sessions.db", "sessions.db-shm", "sessions.db-wal"]

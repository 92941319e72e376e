"""agentsview's archive, with the tables that the program gives it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.readers.agentsview import READER
from debrief.sessions.readers.base import Transcript
from debrief.sessions.readers.files import walk
from tests.planting import EXAMPLES

EXAMPLE = json.loads(EXAMPLES["agentsview"].read_text())
_TABLES = {
    "sessions": EXAMPLE["agentsview"],
    "messages": EXAMPLE["messages"][0],
    "tool_calls": EXAMPLE["tool_calls"][0],
    "tool_result_events": EXAMPLE["tool_result_events"][0],
}


class Archive:
    """An archive that is being written, as by the program itself."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.path = folder / "sessions.db"
        self.connection = sqlite3.connect(self.path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        for table, row in _TABLES.items():
            self.connection.execute(f"CREATE TABLE {table} ({', '.join(row)})")

    def add(self, table: str, row: dict[str, Any]) -> None:
        marks = ", ".join("?" * len(row))
        self.connection.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values())
        )

    def files(self) -> dict[str, bytes]:
        """Return the archive and its log, and whether there is anything else, without the index."""
        names = (path for path in self.path.parent.iterdir())
        return {path.name: path.read_bytes() for path in names if path.suffix != ".db-shm"}

    def add_session(self, **changed: Any) -> None:
        self.add("sessions", EXAMPLE["agentsview"] | changed)


def found(folder: Path) -> list[Transcript]:
    return list(READER.find(walk(folder)))


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    archive = Archive(tmp_path / ".agentsview")
    archive.add_session()
    for table in list(_TABLES)[1:]:
        for row in EXAMPLE[table]:
            archive.add(table, row)
    return archive


def test_a_session_of_an_archive_is_what_its_document_says_and_nothing_is_written(
    archive: Archive, tmp_path: Path
) -> None:
    before = archive.files()
    (transcript,) = found(archive.path.parent)
    session = READER.read(transcript)
    assert archive.files() == before
    assert (session.tool, session.id, len(session.turns)) == ("hermes", "hermes:s1", 2)
    (document,) = READER.documents(transcript)
    carried = tmp_path / "carried"
    carried.mkdir()
    (carried / "a.json").write_bytes(document)
    (again,) = found(carried)
    assert replace(READER.read(again), transcripts=()) == replace(session, transcripts=())


def test_agents_that_have_a_reader_and_sessions_that_were_deleted_are_left_out(
    archive: Archive,
) -> None:
    archive.add_session(id="c1", agent="claude")
    archive.add_session(id="amp:T-1", agent="amp")
    archive.add_session(id="hermes:s2", deleted_at="2026-03-03T00:00:00Z")
    assert [transcript.path for transcript in found(archive.path.parent)] == [
        f"{archive.path}#hermes:s1"
    ]


def test_a_session_that_changed_has_another_stamp(archive: Archive) -> None:
    (before,) = found(archive.path.parent)
    archive.add_session(id="hermes:s2")
    (same, _) = found(archive.path.parent)
    archive.connection.execute("UPDATE sessions SET message_count = 9 WHERE id = 'hermes:s1'")
    (changed, _) = found(archive.path.parent)
    assert same.stamp == before.stamp != changed.stamp


def test_an_archive_without_such_sessions_or_of_other_tables_says_so(tmp_path: Path) -> None:
    empty = Archive(tmp_path / "agentsview")
    (nothing,) = found(empty.path.parent)
    with pytest.raises(InputError, match="no session of an agent that has no reader"):
        READER.peek(nothing)
    empty.connection.execute("ALTER TABLE messages DROP COLUMN content")
    (other,) = found(empty.path.parent)
    with pytest.raises(InputError, match="its table messages has no column content"):
        READER.peek(other)

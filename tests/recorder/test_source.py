"""The recorder's database as a source: read once, kept up with, and never a reason to lose a week."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa

from debrief.lake import Lake
from debrief.recorder.checks import ReadyRule
from debrief.recorder.contracts import Record
from debrief.recorder.encoding import encode_record
from debrief.recorder.service.ingest import Ingest
from debrief.recorder.storage.rows import Page, StorageError, StoredSession
from debrief.recorder.storage.store import RecordStore
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.recorder_source import RecorderSource, recorder_source
from debrief.sessions.scanning import Scan
from debrief.sessions.store import scan_into, store_week
from debrief.settings import load_settings
from debrief.stages.configuration import SessionSources
from tests.recorder.records import build, upload_of
from tests.recorder.service.helpers import KEY, ensure_task

WEEK = "2026-11-02"
REDACTOR = Redactor(b"k" * 32)


class Door(RecordStore):
    """A store that counts the records that are read, and can be away."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.read: list[str] = []
        self.pages: list[str | None] = []
        self.away = False
        self.away_at_page = 0

    def record_text(self, id: UUID) -> bytes:
        text = super().record_text(id)
        self.read.append(str(id))
        return text

    def sessions(self, *arguments: Any, **options: Any) -> Page[StoredSession]:
        self.pages.append(options.get("cursor"))
        if len(self.pages) == self.away_at_page:
            raise StorageError("the database", "went away")
        return super().sessions(*arguments, **options)

    @contextmanager
    def _connection(self) -> Iterator[sa.Connection]:
        if self.away:
            raise StorageError("the database", "does not answer")
        with super()._connection() as connection:
            yield connection


@pytest.fixture
def door(record_store: RecordStore) -> Iterator[Door]:
    ensure_task(record_store)
    door = Door(url_of(record_store))
    yield door
    door.close()


def url_of(store: RecordStore) -> str:
    return store._engine.url.render_as_string(hide_password=False)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(str(tmp_path / "lake"))


def add(store: RecordStore, ready: bool = False, **meta: Any) -> Record:
    record = build(**{"session_id": uuid4(), **meta})
    store.add_session(Ingest(Redactor(KEY), ReadyRule()).check(upload_of(record)))
    if ready:
        store.set_status(record.meta.session_id, "ready")
    return record


def source_of(door: Door) -> RecorderSource:
    return RecorderSource(lambda: door, lambda: datetime(2026, 11, 4, tzinfo=UTC))


def taken(
    lake: Lake, source: RecorderSource, folders: list[Path] | None = None
) -> tuple[Scan, list[Session], list[UnreadTranscript]]:
    """Scan and store, and return what the lake holds of the week then."""
    found = scan_into(lake, folders or [], REDACTOR, [source])
    for week in found.weeks():
        store_week(lake, found, week, REDACTOR, [source])
    sessions = list(lake.read("raw_sessions", WEEK, Session))
    return found, sessions, list(lake.read("unread_transcripts", WEEK, UnreadTranscript))


def test_stored_records_stand_in_the_lake_with_their_status(door: Door, lake: Lake) -> None:
    draft, ready = add(door), add(door, ready=True)
    found, sessions, unread = taken(lake, source_of(door))
    assert found.weeks() == [WEEK]
    assert {session.id: session.status for session in sessions} == {
        str(draft.meta.session_id): "draft",
        str(ready.meta.session_id): "ready",
    }
    assert {session.task for session in sessions} == {"cart"}
    assert unread == []
    door.set_status(draft.meta.session_id, "ready")
    _, after, _ = taken(lake, source_of(door))
    assert {session.status for session in after} == {"ready"}
    assert {session.digest for session in after} == {session.digest for session in sessions}


def test_a_new_record_alone_is_looked_at_and_its_week_alone_read(door: Door, lake: Lake) -> None:
    add(door)
    taken(lake, source_of(door))
    door.read.clear()
    taken(lake, source_of(door))
    assert door.read == []
    sunday = datetime(2026, 11, 15, 23, 50, tzinfo=UTC)
    later = add(door, started_at=sunday, stopped_at=sunday + timedelta(minutes=30))
    found, _, _ = taken(lake, source_of(door))
    assert found.weeks() == [WEEK, "2026-11-09"]
    assert set(door.read) == {str(later.meta.session_id)}


def test_a_database_that_is_away_costs_nothing_that_was_there(door: Door, lake: Lake) -> None:
    add(door, ready=True)
    _, before, _ = taken(lake, source_of(door))
    door.away = True
    found, sessions, _ = taken(lake, source_of(door))
    assert sessions == before
    assert [entry.reason for entry in found.entries if entry.reason] == [
        "not listed: does not answer"
    ]
    store_week(lake, found, WEEK, REDACTOR, [source_of(door)], again=True)
    assert list(lake.read("raw_sessions", WEEK, Session)) == before


def test_a_listing_goes_on_where_it_broke_off(
    door: Door, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debrief.sessions.recorder_source.PAGE_SIZE", 2)
    for _ in range(5):
        add(door)
    door.away_at_page = 2
    entries = source_of(door).scan(lake, REDACTOR)
    assert [bool(entry.reason) for entry in entries] == [False, False, True]
    assert len(source_of(door).scan(lake, REDACTOR)) == 5
    assert door.pages[2] == door.pages[1]


def test_another_database_is_listed_anew(door: Door, lake: Lake, postgres_url: str) -> None:
    old = add(door)
    taken(lake, source_of(door))
    with RecordStore(postgres_url) as store:
        store.migrate()
        ensure_task(store)
        new = add(store)
        entries = source_of(Door(url_of(store))).scan(lake, REDACTOR)
    assert [entry.session_id for entry in entries] == [str(new.meta.session_id)]
    assert str(old.meta.session_id) not in {entry.session_id for entry in entries}


def test_a_record_that_lies_in_a_folder_as_well_is_read_from_the_database(
    door: Door, lake: Lake, tmp_path: Path
) -> None:
    record = add(door, ready=True)
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "a.record.json").write_bytes(encode_record(record))
    _, (session,), unread = taken(lake, source_of(door), [folder])
    assert session.status == "ready"
    assert [row.expected for row in unread] == [True]
    assert session.transcripts[0].path == f"recorder:{record.meta.session_id}"
    scan_into(lake, [folder], REDACTOR)
    store_week(lake, scan_into(lake, [folder], REDACTOR), WEEK, REDACTOR)
    (alone,) = lake.read("raw_sessions", WEEK, Session)
    assert alone.id == session.id


def test_a_row_that_somebody_removed_is_told_and_fails_nothing(door: Door, lake: Lake) -> None:
    add(door)
    found = scan_into(lake, [], REDACTOR, [source_of(door)])
    with door._transaction() as connection:
        connection.execute(sa.text("DELETE FROM sessions"))
    store_week(lake, found, WEEK, REDACTOR, [source_of(door)])
    (row,) = lake.read("unread_transcripts", WEEK, UnreadTranscript)
    assert (row.expected, row.reason) == (True, "the database has it no more")


def test_the_source_is_there_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    assert SessionSources().servers() == ()
    assert len(SessionSources(recorder=True).servers()) == 1
    monkeypatch.setenv("DEBRIEF_RECORDER", "1")
    assert len(SessionSources().servers()) == 1


def test_a_database_that_cannot_be_one_is_told_and_stops_nothing(
    tmp_path: Path, lake: Lake
) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path), "DATABASE_URL": "mysql://x/y"})
    source = recorder_source(settings)
    (entry,) = source.scan(lake, REDACTOR)
    assert "not listed" in entry.reason
    assert source.scan(lake, REDACTOR) == [entry]

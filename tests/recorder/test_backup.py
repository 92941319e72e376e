from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.errors import InputError
from debrief.recorder.backup import backup, restore
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage.rows import CursorError, NewBenchmark, StorageError
from debrief.recorder.storage.store import RecordStore
from tests.postgres import TEMPLATE, database
from tests.recorder.records import TEXT, row, task


def filled(url: str) -> RecordStore:
    store = RecordStore(url)
    store.migrate()
    store.add_task(task())
    store.add_session(row())
    store.add_session(row(text='{"words": "ü \\\\ \\" \\t $$ \' --"}'.encode()))
    store.add_benchmark(NewBenchmark(adapter="a", version="1", metric="m", value=0.5))
    return store


def contents(store: RecordStore) -> list[object]:
    return [
        store.tasks(),
        store.sessions().items,
        [(found.id, found.status, found.text) for found in store.export()],
        store.tokens(),
        store.benchmarks().items,
    ]


def test_a_backup_brings_back_everything_in_another_database(
    postgres_server: EmbeddedPostgres, postgres_url: str, tmp_path: Path
) -> None:
    with filled(postgres_url) as store:
        _, secret = store.add_token("ci", ["read"])
        before = contents(store)
        file = tmp_path / "records.backup"
        assert backup(postgres_url, file) == file.stat().st_size
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [file]
    with database(postgres_server, TEMPLATE) as url, RecordStore(url) as other:
        restore(url, file)
        other.check()
        assert contents(other) == before
        assert other.find_token(secret) is not None
        later = other.add_session(row())
        assert other.sessions().items[-1] == later


def test_what_is_there_is_replaced_only_when_asked_and_old_cursors_end(
    postgres_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "records.backup"
    with filled(postgres_url) as store:
        backup(postgres_url, file)
        before = contents(store)
        store.add_session(row())
        cursor = store.sessions().cursor
        with pytest.raises(InputError, match=r"benchmarks, sessions, tasks.*--replace"):
            restore(postgres_url, file)
        assert store.count() == 3
        restore(postgres_url, file, replace=True)
        assert contents(store) == before
        with pytest.raises(CursorError, match="before it was restored"):
            store.sessions(cursor=cursor)


def test_a_backup_of_an_earlier_revision_is_migrated_on(postgres_url: str, tmp_path: Path) -> None:
    file = tmp_path / "records.backup"
    with filled(postgres_url) as store:
        [first, second] = store.sessions().items
        store.migrate("0002")
        backup(postgres_url, file)
        store.migrate()
        result = CliRunner().invoke(
            app, ["database", "restore", str(file), "--replace", "--database", postgres_url]
        )
        assert result.exit_code == 0
        assert "2 sessions" in result.output
        assert store.sessions().items == (first, second)
        assert store.record_text(first.id) == TEXT


@pytest.mark.parametrize("harm", ["cut", "bent", "empty", "text"])
def test_a_damaged_backup_changes_nothing(postgres_url: str, tmp_path: Path, harm: str) -> None:
    file = tmp_path / "records.backup"
    with filled(postgres_url) as store:
        for _ in range(40):
            store.add_session(row())
        before = contents(store)
        backup(postgres_url, file)
        data = bytearray(file.read_bytes())
        start = data.index(b"x\x9c") if b"x\x9c" in data else len(data) // 2
        damaged: dict[str, bytes] = {
            "cut": bytes(data[: start + 20]),
            "bent": bytes(data[: start + 4] + bytes(len(data) - start - 4)),
            "empty": b"",
            "text": b"SELECT 1;\n",
        }
        file.write_bytes(damaged[harm])
        with pytest.raises((InputError, StorageError)):
            restore(postgres_url, file, replace=True)
        assert contents(store) == before


def test_a_backup_overwrites_nothing(postgres_url: str, tmp_path: Path) -> None:
    file = tmp_path / "records.backup"
    file.write_text("mine")
    with pytest.raises(InputError, match="exists"):
        backup(postgres_url, file)
    with pytest.raises(InputError, match="cannot be written"):
        backup(postgres_url, tmp_path / "nowhere" / "records.backup")
    assert file.read_text() == "mine"


def test_no_backup_is_left_when_the_database_is_away(tmp_path: Path) -> None:
    url = "postgresql://me:hush-hush@127.0.0.1:1/records"
    with pytest.raises(StorageError) as told:
        backup(url, tmp_path / "records.backup")
    assert "hush-hush" not in str(told.value)
    assert list(tmp_path.iterdir()) == []

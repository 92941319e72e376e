from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
import sqlalchemy as sa

from debrief.errors import InputError
from debrief.recorder.storage import listing as tables
from debrief.recorder.storage.rows import NewBenchmark, StorageError
from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import TEXT, row, task

REVISIONS = ("0001", "0002", "0003", "0004", "0005")
_FIRST_SESSIONS = """
INSERT INTO tasks (id, name) VALUES ('cart', 'Cart');
INSERT INTO sessions (id, task_id, repo_name, base_ref, created_at, record) VALUES
    ('00000000-0000-4000-8000-000000000002', 'cart', 'shop', repeat('1', 40), '2026-11-03',
        '{"meta": {"verified": true, "changes": [{}, {}]}, "messages": []}'),
    ('00000000-0000-4000-8000-000000000001', 'cart', 'shop', repeat('1', 40), '2026-11-02',
        '{"messages": [], "meta": "ü"}');
"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[RecordStore]:
    with RecordStore(postgres_url) as store:
        yield store


def run(store: RecordStore, statement: str) -> None:
    with store._transaction() as connection:
        connection.exec_driver_sql(statement)


def test_migrating_from_nothing_makes_the_tables_as_they_are_used(store: RecordStore) -> None:
    assert store.revision() is None
    assert store.migrate() == (None, REVISIONS[-1])
    assert store.migrate() == (REVISIONS[-1], REVISIONS[-1])
    store.check()
    with store._connection() as connection:
        for table in (
            tables.tasks,
            tables.sessions,
            tables.tokens,
            tables.benchmarks,
            tables.store,
        ):
            connection.execute(sa.select(table))


def test_from_every_revision_it_goes_back_and_forth(store: RecordStore) -> None:
    store.migrate()
    for revision in (*REVISIONS[:-1], "base"):
        assert store.migrate(revision)[1] == (None if revision == "base" else revision)
        with pytest.raises(StorageError, match="debrief database migrate"):
            store.check()
        store.migrate()
        store.check()


def test_the_first_tables_are_taken_over_with_what_is_in_them(store: RecordStore) -> None:
    store.migrate("0001")
    run(store, _FIRST_SESSIONS)
    store.migrate()
    later = row()
    store.add_session(later)
    first, second, third = store.sessions().items
    assert [first.created_at.day, second.created_at.day] == [2, 3]
    assert third.id == later.id
    assert (second.verified, second.files, second.status) == (True, 2, "draft")
    assert (first.verified, first.files) == (False, 0)
    assert first.not_ready
    for found in (first, second):
        text = store.record_text(found.id)
        assert (found.size, found.sha256) == (len(text), sha256(text).hexdigest())
    assert json.loads(store.record_text(first.id)) == {"messages": [], "meta": "ü"}
    assert store.sessions(order="changed").items == (first, second, third)


def test_going_back_keeps_tasks_and_records(store: RecordStore) -> None:
    store.migrate()
    store.add_task(task())
    kept = store.add_session(row())
    store.add_benchmark(NewBenchmark(adapter="a", version="1", metric="m", value=1.0))
    store.migrate("0002")
    assert store.record_text(kept.id) == TEXT
    store.migrate("0001")
    with store._connection() as connection:
        record = connection.exec_driver_sql("SELECT record FROM sessions").scalar_one()
    assert record == {"tools": [], "messages": [], "meta": {"a": 2, "b": "ü"}}
    store.migrate()
    assert json.loads(store.record_text(kept.id)) == record
    assert store.benchmarks().items == ()


def test_many_may_migrate_at_once(postgres_url: str) -> None:
    def migrate(_: int) -> tuple[str | None, str | None]:
        with RecordStore(postgres_url) as store:
            return store.migrate()

    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(migrate, range(6)))
    assert sorted(results, key=str) == [
        *[(REVISIONS[-1], REVISIONS[-1])] * 5,
        (None, REVISIONS[-1]),
    ]


def test_a_database_of_a_newer_version_is_left_alone(store: RecordStore) -> None:
    store.migrate()
    run(store, "UPDATE alembic_version SET version_num = '0042'")
    for call in (store.check, store.migrate, lambda: store.migrate("0001")):
        with pytest.raises(StorageError, match=r"0042.*Upgrade Debrief.*--to 0005"):
            call()
    assert store.revision() == "0042"


def test_a_migration_that_fails_changes_nothing(store: RecordStore) -> None:
    store.migrate("0001")
    run(store, "CREATE TABLE tokens (mine text)")
    with pytest.raises(StorageError, match="already exists"):
        store.migrate()
    assert store.revision() == "0001"


@pytest.mark.parametrize("revision", ["", "0009", "head+1", "heads", "-1"])
def test_a_revision_that_there_is_not_is_refused(shared_store: RecordStore, revision: str) -> None:
    with pytest.raises(InputError, match="0001, 0002, 0003, 0004, 0005, base"):
        shared_store.migrate(revision)

"""Records in and out of the database, also one that breaks off, is away, or was never one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from debrief.errors import ConfigurationError, InputError
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage import listing
from debrief.recorder.storage.connecting import make_engine
from debrief.recorder.storage.rows import (
    AwayError,
    CursorError,
    StorageError,
)
from debrief.recorder.storage.store import RecordStore
from tests.postgres import execute
from tests.recorder.records import TEXT, benchmark, row, task
from tests.waiting import LONG


def test_a_record_comes_back_byte_for_byte_and_can_be_asked_as_jsonb(store: RecordStore) -> None:
    far = timezone(timedelta(hours=9))
    new = row(created_at=datetime(2026, 11, 3, 1, 0, tzinfo=far), not_ready=["no test ran"])
    stored = store.add_session(new)
    assert stored.created_at == datetime(2026, 11, 2, 16, 0, tzinfo=UTC)
    assert stored.created_at.utcoffset() == timedelta(0)
    assert (stored.size, stored.sha256, stored.status) == (len(TEXT), new.sha256, "draft")
    assert stored.not_ready == ["no test ran"]
    assert store.session(new.id) == stored
    assert list(store.sessions().items) == [stored]
    assert store.record_text(new.id) == TEXT
    with store._connection() as connection:
        query = sa.text("SELECT record #>> '{meta,a}' FROM sessions")
        assert connection.execute(query).scalar_one() == "2"


@settings(
    max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    value=st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    ),
    ascii=st.booleans(),
)
def test_every_text_comes_back_from_the_store_and_from_an_export(
    store: RecordStore, value: dict[str, str], ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii).encode()
    new = row(text=text)
    before = store.sessions().cursor
    store.add_session(new)
    assert store.record_text(new.id) == text
    assert [(found.id, found.text) for found in store.export(cursor=before)] == [(new.id, text)]


@pytest.mark.parametrize(
    "given",
    [
        {"text": b'{"a": "\\u0000"}'},
        {"text": b"no json"},
        {"repo_name": "a\0b"},
        {"branch": "\ud800"},
    ],
    ids=["NUL in JSON", "no JSON", "NUL", "surrogate"],
)
def test_what_postgres_cannot_hold_is_bad_input(
    refusing: RecordStore, given: dict[str, Any]
) -> None:
    with pytest.raises(InputError):
        refusing.add_session(row(**given))
    assert refusing.count() == 0


def test_pages_and_exports_of_any_size_give_every_session_once(store: RecordStore) -> None:
    ids = [store.add_session(row()).id for _ in range(7)]
    for limit in (1, 2, 3, 7, 8):
        seen: list[UUID] = []
        cursor = None
        while True:
            page = store.sessions(cursor=cursor, limit=limit)
            seen += [found.id for found in page.items]
            cursor = page.cursor
            if not page.more:
                break
        assert seen == ids
        assert store.sessions(cursor=cursor).items == ()
        export = store.export(limit=limit)
        assert [found.id for found in export] == ids[:limit]
        assert [found.id for found in store.export(cursor=export.end)] == ids[limit:]
    late = store.add_session(row()).id
    assert [found.id for found in store.sessions(cursor=cursor).items] == [late]


def test_a_row_that_commits_late_is_not_skipped(store: RecordStore) -> None:
    """Numbers are drawn in one order and committed in another."""
    with store._engine.connect() as slow:
        listing.lock_numbering(slow)
        number = slow.exec_driver_sql(
            "SELECT nextval(pg_get_serial_sequence('sessions', 'number'))"
        ).scalar_one()
        fast = store.add_session(row())
        pages: list[Any] = []
        reader = threading.Thread(target=lambda: pages.append(store.sessions()))
        reader.start()
        reader.join(0.3)
        assert reader.is_alive()
        late = row()
        slow.exec_driver_sql(
            """INSERT INTO sessions (id, number, task_id, repo_name, base_ref, record_text,
                size, sha256, verified, files, validated, redactions) OVERRIDING SYSTEM VALUE
            VALUES (%(id)s, %(number)s, 'cart', 'r', repeat('1', 40), '{}', 2, 'x', true, 0, true, 0)""",
            {"id": str(late.id), "number": number},
        )
        slow.commit()
        reader.join(LONG)
    [page] = pages
    assert [found.id for found in page.items] == [late.id, fast.id]


def test_readers_miss_nothing_while_many_write(store: RecordStore) -> None:
    done = threading.Event()
    seen: list[UUID] = []

    def read() -> None:
        cursor = None
        while True:
            last = done.is_set()
            page = store.sessions(cursor=cursor, limit=5)
            seen.extend(found.id for found in page.items)
            cursor = page.cursor
            if last and not page.more:
                return

    reader = threading.Thread(target=read)
    reader.start()
    with ThreadPoolExecutor(6) as threads:
        written = list(threads.map(lambda _: store.add_session(row()).id, range(120)))
    done.set()
    reader.join(LONG)
    assert sorted(seen) == sorted(written)


def test_who_keeps_up_by_changes_sees_a_session_again_when_its_status_is_set(
    store: RecordStore,
) -> None:
    first, second = store.add_session(row()), store.add_session(row())
    page = store.sessions(order="changed")
    assert [found.id for found in page.items] == [first.id, second.id]
    store.set_status(first.id, "ready")
    store.set_status(second.id, "draft")
    page = store.sessions(cursor=page.cursor, order="changed")
    assert [(found.id, found.status) for found in page.items] == [(first.id, "ready")]
    assert [found.id for found in store.sessions().items] == [first.id, second.id]


def test_a_cursor_of_one_listing_is_refused_by_another(refusing: RecordStore) -> None:
    with pytest.raises(CursorError):
        refusing.sessions(cursor=refusing.sessions(order="changed").cursor)
    with pytest.raises(CursorError):
        refusing.benchmarks(cursor=refusing.sessions().cursor)


def test_connections_that_the_server_ended_are_replaced_unnoticed(
    store: RecordStore, postgres_server: EmbeddedPostgres
) -> None:
    store.add_session(row())
    execute(
        postgres_server,
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE application_name = 'debrief'",
    )
    assert store.count() == 1


CALLS: dict[str, Callable[[RecordStore], object]] = {
    "check": lambda store: store.check(),
    "revision": lambda store: store.revision(),
    "migrate": lambda store: store.migrate(),
    "task": lambda store: store.task("cart"),
    "add_task": lambda store: store.add_task(task()),
    "add_session": lambda store: store.add_session(row()),
    "sessions": lambda store: store.sessions(),
    "counts": lambda store: store.counts(),
    "set_status": lambda store: store.set_status(uuid4(), "ready"),
    "export": lambda store: store.export(),
    "add_token": lambda store: store.add_token("ci", ["read"]),
    "find_token": lambda store: store.find_token("x"),
    "add_benchmark": lambda store: store.add_benchmark(benchmark()),
    "benchmarks": lambda store: store.benchmarks(),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_call_says_when_the_database_is_away(name: str) -> None:
    store = RecordStore("postgresql://me:hush-hush@127.0.0.1:1/records")
    with pytest.raises(AwayError, match="See that Postgres runs there") as told:
        CALLS[name](store)
    assert "hush-hush" not in str(told.value)


def test_every_call_says_when_the_tables_are_missing(postgres_url: str) -> None:
    with RecordStore(postgres_url) as store:
        for name in CALLS.keys() - {"revision", "migrate"}:
            with pytest.raises(StorageError, match="debrief database migrate"):
                CALLS[name](store)


@pytest.mark.parametrize("url", ["", "mysql://db/x", "records", "postgresql://h:port/x"])
def test_an_address_that_is_none_is_a_setting_to_correct(url: str) -> None:
    with pytest.raises(ConfigurationError, match="DATABASE_URL"):
        make_engine(url)


def test_a_database_of_another_encoding_is_refused(postgres_server: EmbeddedPostgres) -> None:
    execute(postgres_server, "CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0")
    store = RecordStore(postgres_server.url_of("plain"))
    with store, pytest.raises(StorageError, match="SQL_ASCII"):
        store.check()
    execute(postgres_server, "DROP DATABASE plain")

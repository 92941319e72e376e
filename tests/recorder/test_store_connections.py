"""A database that breaks off, is away, or was never one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import uuid4

import pytest

from debrief.errors import ConfigurationError, DebriefError
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage import listing
from debrief.recorder.storage.connecting import make_engine
from debrief.recorder.storage.rows import AwayError, StorageError
from debrief.recorder.storage.store import RecordStore
from tests.postgres import execute
from tests.recorder.records import benchmark, row, task


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


def test_a_request_that_the_server_ends_is_a_storage_error(
    store: RecordStore, postgres_server: EmbeddedPostgres
) -> None:
    with store._engine.connect() as holder:
        listing.lock_numbering(holder)
        failures: list[DebriefError] = []

        def read() -> None:
            try:
                store.sessions()
            except DebriefError as error:
                failures.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        while reader.is_alive():
            execute(
                postgres_server,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE wait_event = 'advisory'",
            )
            reader.join(0.05)
    assert [isinstance(failure, StorageError) for failure in failures] == [True]


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

"""A real Postgres for tests: one server a worker, one database a test."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import psycopg2
import pytest

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.storage.store import RecordStore

TEMPLATE = "migrated"
_EMPTIED = "TRUNCATE tasks, sessions, tokens, benchmarks RESTART IDENTITY CASCADE"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """The worker's server, with a database that was migrated, to copy."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("postgres"), durable=False) as server:
        execute(server, f"CREATE DATABASE {TEMPLATE}")
        with RecordStore(server.url_of(TEMPLATE)) as store:
            store.migrate()
        yield server


@pytest.fixture
def postgres_url(postgres_server: EmbeddedPostgres) -> Iterator[str]:
    """The address of an empty database of the test's own."""
    with database(postgres_server, "template0") as url:
        yield url


@pytest.fixture
def record_store(postgres_server: EmbeddedPostgres) -> Iterator[RecordStore]:
    """A store without anything in it, and nobody else's while the test runs."""
    name = common_database(postgres_server)
    execute(postgres_server, f"SET lock_timeout = '120s'; {_EMPTIED}", name)
    with RecordStore(postgres_server.url_of(name)) as store:
        yield store


@pytest.fixture(scope="module")
def shared_store(postgres_server: EmbeddedPostgres) -> Iterator[RecordStore]:
    """A store of the module's tests that leave nothing in it."""
    with database(postgres_server, TEMPLATE) as url, RecordStore(url) as store:
        yield store


@cache
def common_database(server: EmbeddedPostgres) -> str:
    """The name of a database that tests use one after the other: making one takes longer."""
    execute(server, f"CREATE DATABASE common TEMPLATE {TEMPLATE}")
    return "common"


def execute(server: EmbeddedPostgres, statement: str, database: str = "postgres") -> None:
    """Run a statement that no transaction may hold."""
    connection = psycopg2.connect(server.url_of(database))
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(statement)
    finally:
        connection.close()


@contextmanager
def database(server: EmbeddedPostgres, template: str) -> Iterator[str]:
    """The address of a new database, which is dropped again."""
    name = f"test_{uuid.uuid4().hex}"
    execute(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield server.url_of(name)
    finally:
        execute(server, f"DROP DATABASE {name} WITH (FORCE)")


def in_dagster_schema(url: str) -> str:
    """Return the address of a database in which Dagster's tables get a schema of their own."""
    return f"{url}&options=-csearch_path%3Ddagster"

"""The state of a team: a schema of its own in a Postgres that all machines reach."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from debrief.errors import ConfigurationError
from debrief.state.store import NAMED, State

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

T = TypeVar("T")

SCHEMA = "debrief_state"
_SPOKEN = ("postgres", "postgresql+psycopg", "postgresql+asyncpg")
"""Other ways to write the same address."""
_PATIENCE = 60.0
"""Seconds that the server may be away for, as it is while it is restarted."""
_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS {s}",
    "CREATE TABLE IF NOT EXISTS {s}.answers (key TEXT PRIMARY KEY, value BYTEA NOT NULL, "
    "kept DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE IF NOT EXISTS {s}.spending (run TEXT PRIMARY KEY, calls BIGINT NOT NULL, "
    "usd DOUBLE PRECISION NOT NULL, since DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE IF NOT EXISTS {s}.leases (name TEXT PRIMARY KEY, run TEXT NOT NULL, "
    "token TEXT NOT NULL, process TEXT NOT NULL, since DOUBLE PRECISION NOT NULL, "
    "beat DOUBLE PRECISION NOT NULL)",
    "CREATE TABLE IF NOT EXISTS {s}.chores (chore TEXT PRIMARY KEY, at DOUBLE PRECISION NOT NULL)",
)
_MAKING = 0x64656272
"""Number of the lock that whoever makes the tables holds: making them twice at once fails."""
_ALIVE = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "application_name": "debrief",
}


class PostgresState(State):
    """The state in a database.

    Args:
        url: ``postgresql://…``; the user may make a schema in the database, or finds it made.
        patience: seconds that the server may be away for.

    Raises:
        ConfigurationError: the database cannot be reached or used.
    """

    prefix = f"{SCHEMA}."
    clock = "EXTRACT(EPOCH FROM clock_timestamp())::double precision"
    up = "EXTRACT(EPOCH FROM pg_postmaster_start_time())::double precision"

    def __init__(self, url: str, *, patience: float = _PATIENCE) -> None:
        from sqlalchemy import make_url
        from sqlalchemy.exc import ArgumentError

        try:
            self._url = make_url(url)
            if self._url.drivername in _SPOKEN:
                self._url = self._url.set(drivername="postgresql")
            backend = self._url.get_backend_name()
        except ArgumentError:
            backend = ""
        if backend != "postgresql":
            raise ConfigurationError(
                NAMED,
                "is no address of a Postgres database",
                "Write it as postgresql://user:password@host/database, or say here.",
            )
        self.place = self._url.render_as_string(hide_password=True)
        self._patience = patience
        self._guard = threading.Lock()
        self._made: Engine | None = None
        self._process = 0
        self._retried(self._make_tables)

    def close(self) -> None:
        """Let go of the connections."""
        with self._guard:
            if self._made is not None and self._process == os.getpid():
                self._made.dispose()
            self._made = None

    def compact(self) -> None:
        """Leave the room of what was dropped to the server, which uses it again by itself."""

    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        from sqlalchemy import text

        asked = text(statement)
        return self._retried(lambda c: [tuple(row) for row in c.execute(asked, dict(values))])

    def _change(self, statement: str, values: Mapping[str, Any]) -> int:
        from sqlalchemy import text

        asked = text(statement)
        return self._retried(lambda c: int(c.execute(asked, dict(values)).rowcount))

    def _retried(self, do: Callable[[Connection], T]) -> T:
        """Do something on a connection, again while the server is away.

        A statement whose answer was lost with the connection is sent twice: all but those on
        what was spent come to the same then, and those err by one call.
        """
        from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

        tries = Retrying(
            retry=retry_if_exception_type((OperationalError, InterfaceError)),
            stop=stop_after_delay(self._patience),
            wait=wait_random_exponential(multiplier=0.1, max=2.0),
            reraise=True,
        )
        try:
            done: T = tries(self._once, do)
        except SQLAlchemyError as error:
            reason = " ".join(str(getattr(error, "orig", None) or error).split())
            raise ConfigurationError(
                self.place,
                f"the shared state cannot be used: {reason}",
                "See that the server runs and lets this user make a schema; the next run goes on. "
                f"{NAMED} names another one, or says here: a file of this machine alone.",
            ) from None
        return done

    def _once(self, do: Callable[[Connection], T]) -> T:
        with self._engine().connect() as connection:
            return do(connection)

    def _engine(self) -> Engine:
        """Return this process's connections: a child of a fork does not use its parent's."""
        from sqlalchemy import create_engine

        with self._guard:
            if self._made is None or self._process != os.getpid():
                if self._made is not None:
                    self._made.dispose(close=False)
                self._process = os.getpid()
                self._made = create_engine(
                    self._url,
                    isolation_level="AUTOCOMMIT",
                    pool_pre_ping=True,
                    pool_size=2,
                    max_overflow=6,
                    pool_timeout=60,
                    connect_args=_ALIVE,
                )
            return self._made

    @staticmethod
    def _make_tables(connection: Connection) -> None:
        from sqlalchemy import text

        known = text("SELECT to_regclass(:table)")
        if connection.execute(known, {"table": f"{SCHEMA}.chores"}).scalar() is not None:
            return
        connection.execute(text(f"SELECT pg_advisory_lock({_MAKING})"))
        try:
            for statement in _TABLES:
                connection.execute(text(statement.format(s=SCHEMA)))
        finally:
            connection.execute(text(f"SELECT pg_advisory_unlock({_MAKING})"))

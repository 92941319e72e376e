"""Connections to Postgres, and its failures as errors that a person can act on."""

from __future__ import annotations

import re
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.recorder.errors import AwayError, NotFoundError, StorageError, UnknownTaskError

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

CONNECTIONS = 16
"""At most so many at once, a process and store."""

_SESSION = (
    "SET TIME ZONE 'UTC';"
    "SET client_encoding TO 'UTF8';"
    "SET statement_timeout TO '60s';"
    "SET lock_timeout TO '15s';"
    "SET idle_in_transaction_session_timeout TO '10s'"
)
_AWAY = "Look at: debrief database status. The same request can be made again."
_UNREACHED = (
    "See that Postgres runs there (debrief database status); DATABASE_URL or --database names "
    "another place."
)
_NOT_MIGRATED = {"42P01", "42703", "3F000"}
"""No such table, column or schema."""


def address_of(url: str) -> URL:
    """Return a database's address in its parts.

    Raises:
        ConfigurationError: ``url`` is not a Postgres address.
    """
    import sqlalchemy as sa

    try:
        address = sa.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url))
    except (sa.exc.ArgumentError, ValueError):
        raise _no_address() from None
    if address.drivername != "postgresql+psycopg2":
        raise _no_address()
    return address


def make_engine(url: str) -> Engine:
    """Return a pool of connections; nothing is connected yet.

    Raises:
        ConfigurationError: ``url`` is not a Postgres address.
    """
    import sqlalchemy as sa

    engine = sa.create_engine(
        address_of(url),
        pool_size=CONNECTIONS // 2,
        max_overflow=CONNECTIONS - CONNECTIONS // 2,
        pool_timeout=15,
        connect_args={"connect_timeout": 10, "application_name": "debrief"},
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_SESSION)
        connection.commit()

    @sa.event.listens_for(engine, "checkout")
    def _alive(connection: Any, *_: object) -> None:
        # A server that goes away says so: an idle connection with something to read is over.
        waiting = select.poll()
        if not connection.closed:
            waiting.register(connection, select.POLLIN)
        if connection.closed or waiting.poll(0):
            raise sa.exc.DisconnectionError

    return engine


@contextmanager
def at_once(connection: Connection) -> Iterator[None]:
    """Make each request a transaction of its own, which saves asking for its begin and commit."""
    driver: Any = connection.connection.driver_connection
    driver.autocommit = True
    try:
        yield
    finally:
        if not driver.closed:
            driver.autocommit = False


@contextmanager
def explained() -> Iterator[None]:
    """Turn failures of the database into errors of ours, without contents or passwords in them.

    Raises:
        StorageError: the database is away or busy, or its tables are not as they should be.
        UnknownTaskError: a row names a task that is not there.
        NotFoundError: a row names a session that is not there.
        InputError: Postgres cannot hold a value.
    """
    from pydantic import ValidationError
    from sqlalchemy import exc

    try:
        yield
    except exc.DBAPIError as error:
        raise meaning(error.orig) from None
    except exc.TimeoutError:
        raise StorageError("the database", "is busy with other requests", _AWAY) from None
    except exc.SQLAlchemyError as error:
        raise StorageError("the database", type(error).__name__, _AWAY) from None
    except ValidationError:
        raise StorageError(
            "the database", "holds a row that this version does not understand", _AWAY
        ) from None
    except (ValueError, OverflowError) as error:
        raise InputError("a value", f"cannot be stored ({type(error).__name__})") from None


def meaning(error: BaseException | None) -> DebriefError:
    """Return what a failure of the driver means."""
    import psycopg2

    code = getattr(error, "pgcode", None) or ""
    diagnosis = getattr(error, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None) or ""
    reason = getattr(diagnosis, "message_primary", None) or first_line(error)
    if isinstance(error, psycopg2.IntegrityError):
        if constraint.endswith("task_id_fkey"):
            return UnknownTaskError("the task", "does not exist", "Make it first, or name another.")
        if constraint.endswith("session_id_fkey"):
            return NotFoundError("the session", "is not stored here", "Store it first.")
    if isinstance(error, psycopg2.DataError) or code == "54000":
        return InputError("a value", f"cannot be stored: {reason}")
    if code in _NOT_MIGRATED:
        return StorageError("the database", reason, "Run: debrief database migrate")
    if isinstance(error, psycopg2.OperationalError) and not code:
        return AwayError("the database", reason, _UNREACHED)
    return StorageError("the database", reason, _AWAY)


def first_line(error: object) -> str:
    """Return what a driver's message says first; the rest may quote rows."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else "gave no reason"


def _no_address() -> ConfigurationError:
    return ConfigurationError(
        "DATABASE_URL",
        "is not the address of a Postgres database",
        "It looks like: postgresql://user:password@host:5432/name",
    )

"""Connections to Postgres, and its failures as errors that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.recorder.errors import AwayError, NotFoundError, StorageError, UnknownTaskError
from debrief.retry import first_line

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

CONNECTIONS = 16
"""At most so many at once, for each process and store."""

_SESSION = (
    "SET TIME ZONE 'UTC';"
    "SET client_encoding TO 'UTF8';"
    "SET statement_timeout TO '60s';"
    "SET lock_timeout TO '15s';"
    "SET idle_in_transaction_session_timeout TO '10s'"
)
_RETRY = "Look at: debrief database status. The same request can be made again."
_UNREACHABLE = (
    "See that Postgres runs there (debrief database status); DATABASE_URL or --database names "
    "another one."
)
_NOT_MIGRATED = {"42P01", "42703", "3F000"}
"""No such table, column or schema."""
_TOO_LARGE = "54000"


def address_of(url: str) -> URL:
    """Return the parts of a database's address.

    Raises:
        ConfigurationError: ``url`` is not a Postgres address.
    """
    import sqlalchemy as sa

    not_an_address = ConfigurationError(
        "DATABASE_URL",
        "is not the address of a Postgres database",
        "It looks like: postgresql://user:password@host:5432/name",
    )
    try:
        address = sa.make_url(re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url))
    except (sa.exc.ArgumentError, ValueError):
        raise not_an_address from None
    if address.drivername != "postgresql+psycopg2":
        raise not_an_address
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
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10, "application_name": "debrief"},
    )

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_SESSION)
        connection.commit()

    return engine


@contextmanager
def explained() -> Iterator[None]:
    """Turn failures of the database into our errors, without contents or passwords in them.

    Raises:
        StorageError: the database is away or busy, or its tables are not as they should be.
        UnknownTaskError: a row names a task that does not exist.
        NotFoundError: a row names a session that is not stored.
        InputError: Postgres cannot hold a value.
    """
    from sqlalchemy import exc

    try:
        yield
    except exc.DBAPIError as error:
        raise _explain(error.orig) from None
    except exc.TimeoutError:
        raise StorageError("the database", "is busy with other requests", _RETRY) from None
    except exc.SQLAlchemyError as error:
        raise StorageError("the database", type(error).__name__, _RETRY) from None
    except (ValueError, OverflowError) as error:
        raise InputError("a value", f"cannot be stored ({type(error).__name__})") from None


def _explain(error: BaseException | None) -> DebriefError:
    import psycopg2

    code = getattr(error, "pgcode", None) or ""
    diagnosis = getattr(error, "diag", None)
    constraint = getattr(diagnosis, "constraint_name", None) or ""
    reason = getattr(diagnosis, "message_primary", None) or (first_line(error) if error else "")
    if constraint.endswith("task_id_fkey"):
        detail = re.search(r"=\((.*)\)", getattr(diagnosis, "message_detail", None) or "")
        name = f"task {detail[1]}" if detail else "the task"
        return UnknownTaskError(name, "does not exist", "Make it first, or name another.")
    if constraint.endswith("session_id_fkey"):
        return NotFoundError("the session", "is not stored here", "Store it first.")
    if isinstance(error, psycopg2.DataError) or code == _TOO_LARGE:
        return InputError("a value", f"cannot be stored: {reason}")
    if code in _NOT_MIGRATED:
        return StorageError("the database", reason, "Run: debrief database migrate")
    if isinstance(error, psycopg2.OperationalError) and not code:
        return AwayError("the database", reason, _UNREACHABLE)
    return StorageError("the database", reason, _RETRY)

"""The database: connections, its revision, and its failures as errors that a person can act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.recorder.storage.rows import (
    AwayError,
    NotFoundError,
    StorageError,
    UnknownTaskError,
)
from debrief.retry import first_line

if TYPE_CHECKING:
    from typing import Self

    from alembic.config import Config
    from sqlalchemy import URL, Connection, Engine

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
        hide_parameters=True,
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


_MIGRATION_LOCK = 0x6465627269656601
"""Advisory lock: one process migrates at a time."""


class Database:
    """One Postgres database and its revision; base of the store.

    Args:
        url: ``postgresql://user:password@host:port/name``.

    Raises:
        ConfigurationError: ``url`` is not that.
    """

    def __init__(self, url: str) -> None:
        self._engine = make_engine(url)

    def close(self) -> None:
        """Close all connections; the next call opens new ones."""
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with explained(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with explained(), self._engine.connect() as connection:
            yield connection

    def check(self) -> None:
        """Make sure that the database answers and has the tables of this version.

        Raises:
            StorageError: it does not.
        """
        with self._connection() as connection:
            revision = _current(connection)
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise StorageError(
                "the database", f"has encoding {encoding}", "Make one with encoding UTF8."
            )
        if revision is not None:
            _check_known(revision)
        if revision != head():
            state = "has no tables yet" if revision is None else f"has revision {revision}"
            raise StorageError(
                "the recorder's database",
                f"{state}, and this version works with {head()}",
                "Run: debrief database migrate",
            )

    def rewrite(self, schema: str) -> None:
        """Rewrite all tables of a schema, without what was deleted from them.

        On the server that comes along, the log of former writes goes too: other servers archive
        theirs, and it is theirs to keep.

        Raises:
            StorageError: the database is away, or does not let this user do it.
        """
        import sqlalchemy as sa

        with explained(), self._engine.connect() as connection:
            link = connection.execution_options(isolation_level="AUTOCOMMIT")
            link.exec_driver_sql("SET statement_timeout TO 0")
            quote = link.dialect.identifier_preparer.quote
            for name in sa.inspect(link).get_table_names(schema=schema):
                link.exec_driver_sql(f"VACUUM (FULL) {quote(schema)}.{quote(name)}")
            if link.exec_driver_sql("SHOW wal_recycle").scalar_one() == "off":
                for statement in ("CHECKPOINT", "SELECT pg_switch_wal()", "CHECKPOINT"):
                    link.exec_driver_sql(statement)

    def revision(self) -> str | None:
        """Return the database's revision; None if it has no tables yet."""
        with self._connection() as connection:
            return _current(connection)

    def migrate(self, revision: str = "head") -> tuple[str | None, str | None]:
        """Migrate the database to a revision, forwards or back, all of it or nothing.

        Processes that migrate at once wait for each other.

        Args:
            revision: ``head``, ``base`` (nothing is left), or a revision's id.

        Returns:
            The revisions before and after.

        Raises:
            StorageError: the database was made by a newer version.
            InputError: there is no such revision.
        """
        from alembic import command

        revisions = _revisions()
        if revision not in {"head", "base", *revisions}:
            raise InputError(
                revision,
                "is not a revision of the database",
                f"There are: {', '.join(revisions)}, base.",
            )
        target = head() if revision == "head" else revision
        config = _config()
        with self._transaction() as connection:
            connection.exec_driver_sql(
                "SET LOCAL statement_timeout TO 0; SET LOCAL lock_timeout TO '5min';"
                f"SELECT pg_advisory_xact_lock({_MIGRATION_LOCK})"
            )
            before = _current(connection)
            if before is not None:
                _check_known(before)
            config.attributes["connection"] = connection
            if before is not None and (target == "base" or target < before):
                command.downgrade(config, target)
            elif target not in ("base", before):
                command.upgrade(config, target)
            return before, _current(connection)


def head() -> str:
    """Return the revision that this version of Debrief works with."""
    return _revisions()[-1]


@cache
def _revisions() -> tuple[str, ...]:
    """Return all revisions, the first one first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_config()).walk_revisions()
    return tuple(script.revision for script in scripts)[::-1]


def _current(connection: Connection) -> str | None:
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def _check_known(revision: str) -> None:
    if revision not in _revisions():
        raise StorageError(
            "the recorder's database",
            f"has revision {revision}, which this version of Debrief does not know",
            "Upgrade Debrief to the version that made it, or migrate the database back with that "
            f"version: debrief database migrate --to {head()}",
        )


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    scripts = Path(__file__).parents[1] / "migrations"
    config.set_main_option("script_location", str(scripts).replace("%", "%%"))
    return config

"""Dagster's SQLite storages with their connections kept open.

Dagster's own make an engine and a connection for every statement: each time the statement is
compiled anew, the file opened, and, by the last connection that is closed, the write-ahead log
written back. That was a third of the time of a run over weeks in which nothing had changed.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy import create_engine, event
from sqlalchemy.engine import Connection, Engine


class _KeptOpen:
    """One engine for one file, made when it is first needed."""

    _conn_string: str

    @cached_property
    def _engine(self) -> Engine:
        engine = create_engine(
            self._conn_string,
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
            # Whoever waits for a connection may hold one: a bound could stop both for good.
            max_overflow=-1,
        )
        event.listen(engine, "connect", _lightly_synced)
        return engine

    @contextmanager
    def _kept(self) -> Iterator[Connection]:
        with self._engine.connect() as connection, connection.begin():
            yield connection

    def _close(self) -> None:
        if "_engine" in self.__dict__:
            self._engine.dispose()


class SqliteEvents(_KeptOpen, ConsolidatedSqliteEventLogStorage):
    """The events of all runs, in one file."""

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._kept() as connection:
            yield connection

    def dispose(self) -> None:
        """Stop watching, and close the file."""
        super().dispose()  # type: ignore[no-untyped-call]
        self._close()


class SqliteRuns(_KeptOpen, SqliteRunStorage):
    """The runs, in one file."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Return the storage that a configuration names."""
        return cls.from_local(inst_data=inst_data, **config_value)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Yield a connection, in a transaction of its own."""
        with self._kept() as connection:
            yield connection

    def dispose(self) -> None:
        """Close the file."""
        super().dispose()
        self._close()


def _lightly_synced(connection: Any, _: object) -> None:
    """Leave to the write-ahead log's checkpoints what is forced to the disk.

    A process may be killed at any moment and nothing of it is lost; when the power goes, the
    last events may be, and the file stays whole.
    """
    connection.execute("PRAGMA synchronous = NORMAL")

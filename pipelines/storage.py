"""Dagster's storage of a local lake, as its own, but quicker.

Dagster's classes make an engine of SQLAlchemy for each statement, and an engine that is new knows
no statement yet: making it, and putting the statement into SQL again, takes longer than SQLite
does. Here each storage has one engine. Connections are opened and closed as in Dagster's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self

import sqlalchemy
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import NullPool


class LocalEvents(ConsolidatedSqliteEventLogStorage):
    """The events of all runs, in one file."""

    @cached_property
    def _engine(self) -> Engine:
        return sqlalchemy.create_engine(
            self._conn_string,
            poolclass=NullPool,
            connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS},
        )

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        with self._engine.begin() as connection:
            yield connection

    def has_table(self, table_name: str) -> bool:
        """Return whether there is a table."""
        with self._engine.connect() as connection:
            return bool(self._engine.dialect.has_table(connection, table_name))


class LocalRuns(SqliteRunStorage):
    """The runs."""

    @classmethod
    def from_config_value(
        cls, inst_data: ConfigurableClassData | None, config_value: Mapping[str, Any]
    ) -> Self:
        """Open the storage that a file names, as this class and not as Dagster's."""
        return cls.from_local(inst_data=inst_data, **config_value)

    @cached_property
    def _engine(self) -> Engine:
        return sqlalchemy.create_engine(self._conn_string, poolclass=NullPool)

    @contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a connection for the block, and a transaction."""
        with self._engine.begin() as connection:
            yield connection

"""The state of one machine: a SQLite file in WAL mode, whole after a kill at any moment.

A process that dies leaves a statement done or not done, and others read on while one writes.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random

from debrief.errors import ConfigurationError
from debrief.state.store import State

_WAIT = 30.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB NOT NULL, "
    "kept REAL NOT NULL DEFAULT 0) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS spending (run TEXT PRIMARY KEY, calls INTEGER NOT NULL, "
    "usd REAL NOT NULL, since REAL NOT NULL DEFAULT 0) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS leases (name TEXT PRIMARY KEY, run TEXT NOT NULL, "
    "token TEXT NOT NULL, process TEXT NOT NULL, since REAL NOT NULL, beat REAL NOT NULL) "
    "WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS chores (chore TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID",
)
_LATER = (("answers", "kept"), ("spending", "since"))
"""Columns that the file of an earlier version lacks: times, which count from when it is opened."""
_NO_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


class SqliteState(State):
    """The state in a file.

    Args:
        path: the file; its folder is made. ``None`` keeps everything in memory.

    Raises:
        ConfigurationError: the file cannot be made or opened.
    """

    clock = "((julianday('now') - 2440587.5) * 86400.0)"

    def __init__(self, path: Path | None) -> None:
        self.place = str(path or "memory")
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        with self._open():
            pass

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def compact(self) -> None:
        """Give the room of what was dropped back to the disk."""
        with self._open() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _rows(self, statement: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        with self._open() as connection:
            return connection.execute(statement, values).fetchall()

    def _change(self, statement: str, values: Mapping[str, Any]) -> int:
        with self._open() as connection:
            return connection.execute(statement, values).rowcount

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Yield this process's connection, one thread at a time."""
        with self._lock:
            try:
                if self._connection is None or self._process != os.getpid():
                    self._process = os.getpid()
                    self._connection = self._connect()
                yield self._connection
            except sqlite3.Error as error:
                raise self._failure(error) from error

    def _failure(self, error: sqlite3.Error) -> ConfigurationError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        move = (
            "Make room on the disk; the next run goes on from here."
            if code in _NO_ROOM
            else "Remove the file (answers are then asked for again), or set DEBRIEF_CACHE=off."
        )
        return ConfigurationError(self.place, f"the cache of answers cannot be used: {error}", move)

    def _connect(self) -> sqlite3.Connection:
        if self._path is None:
            return _prepared(sqlite3.connect(":memory:", isolation_level=None, **_SHARED))
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            return self._connected()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise
            self._set_aside(self._path)
            return self._connected()

    @staticmethod
    def _set_aside(path: Path) -> None:
        """Move a file that is no database out of the way, rather than stop every run for it."""
        for tail in ("-wal", "-shm"):
            path.with_name(path.name + tail).unlink(missing_ok=True)
        path.replace(path.with_suffix(".broken"))

    @retry(
        retry=retry_if_exception_type(sqlite3.OperationalError),
        stop=stop_after_delay(_WAIT),
        wait=wait_random(0.01, 0.1),
        reraise=True,
    )
    def _connected(self) -> sqlite3.Connection:
        """Open the file; changing to WAL does not wait for others by itself."""
        connection = sqlite3.connect(
            str(self._path), timeout=_WAIT, isolation_level=None, **_SHARED
        )
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        return _prepared(connection)


_SHARED = {"check_same_thread": False}


def _prepared(connection: sqlite3.Connection) -> sqlite3.Connection:
    for statement in _TABLES:
        connection.execute(statement)
    for table, column in _LATER:
        known = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        if column not in known:
            with suppress(sqlite3.OperationalError):
                connection.execute(
                    f"ALTER TABLE {table} ADD COLUMN {column} REAL NOT NULL DEFAULT 0"
                )
            now = SqliteState.clock
            connection.execute(f"UPDATE {table} SET {column} = {now} WHERE {column} = 0")
    return connection

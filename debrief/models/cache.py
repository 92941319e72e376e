"""The disk cache of answers: shared by processes, and whole after a kill at any moment.

One SQLite file in WAL mode, each answer a transaction of its own. A process that dies leaves
either the whole answer or none, and others read on while one writes. Values are JSON and never
pickles, so a file that somebody else could write runs no code here.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_random

from debrief.errors import ConfigurationError
from debrief.models.usage import Usage

_WAIT = 30.0
_TABLES = (
    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS spending "
    "(run TEXT PRIMARY KEY, calls INTEGER NOT NULL, usd REAL NOT NULL) WITHOUT ROWID",
)


class Kept(Struct, frozen=True, kw_only=True):
    """An answer that was validated, and what it took to get it."""

    text: str
    usage: Usage
    model: str
    """Who gave it: the model asked, or a fallback."""


class Cache:
    """Answers by key, and what runs have spent; safe in threads and processes.

    Args:
        path: the file; its folder is made. ``None`` keeps everything in memory.

    Raises:
        ConfigurationError: the file cannot be made or opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._decoder = msgspec.json.Decoder(Kept)
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        with self._open():
            pass

    def get(self, key: str) -> Kept | None:
        """Return the answer to a question; None when there is none that can be read."""
        with self._open() as connection:
            row = connection.execute("SELECT value FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        try:
            return self._decoder.decode(row[0])
        except msgspec.DecodeError:
            return None

    def put(self, key: str, kept: Kept) -> None:
        """Keep an answer; it is on its way to the disk when this returns."""
        with self._open() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO answers VALUES (?, ?)", (key, msgspec.json.encode(kept))
            )

    def reserve(
        self, run: str, usd: float, *, max_calls: int | None, max_usd: float | None
    ) -> bool:
        """Set a call and what it may cost aside for a run, if both limits allow; in one step."""
        with self._open() as connection:
            connection.execute("INSERT OR IGNORE INTO spending VALUES (?, 0, 0)", (run,))
            done = connection.execute(
                "UPDATE spending SET calls = calls + 1, usd = usd + ?1 WHERE run = ?2 "
                "AND (?3 IS NULL OR calls < ?3) AND (?4 IS NULL OR usd + ?1 <= ?4)",
                (usd, run, max_calls, max_usd),
            )
            return done.rowcount == 1

    def settle(self, run: str, usd: float) -> None:
        """Put what a call really took in place of what was set aside: add the difference."""
        with self._open() as connection:
            connection.execute("UPDATE spending SET usd = usd + ? WHERE run = ?", (usd, run))

    def spent(self, run: str) -> tuple[int, float]:
        """Return the calls and the USD of a run."""
        with self._open() as connection:
            query = "SELECT calls, usd FROM spending WHERE run = ?"
            row = connection.execute(query, (run,)).fetchone()
        return (int(row[0]), float(row[1])) if row else (0, 0.0)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

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
                raise ConfigurationError(
                    str(self._path),
                    f"the cache of answers cannot be used: {error}",
                    "Remove the file (answers are then asked for again), or set DEBRIEF_CACHE=off.",
                ) from error

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
    return connection

"""Other programs' SQLite databases, read while these programs write them.

Nothing is created or changed beside a database. SQLite itself would: it makes a log and an index
of it (``-wal``, ``-shm``) for every database in WAL mode that it opens, even for reading alone.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar
from urllib.parse import quote

from debrief.errors import InputError
from debrief.sessions.readers.files import reason_of

T = TypeVar("T")
Columns = dict[str, frozenset[str]]
"""The names of each table's columns."""

LOG: Final = "-wal"
"""Behind a database's name: its log, which holds what was last written."""
_INDEX = "-shm"
_MAGIC = b"SQLite format 3\0"
_WAL_MODE = 2
_PATIENCE = 5.0
"""Seconds to wait for a program that holds the database for itself."""
_TRIES = 3
_CANNOT_OPEN = {"SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_READONLY_CANTINIT"}
_RESTLESS = "changes all the time; try again, or close the program that writes it"
_LOCKED = {"SQLITE_BUSY", "SQLITE_LOCKED"}
_OWN_FUNCTION = "unsafe use of json_extract()"
"""What older versions of SQLite say where an index is over a JSON field, as Kilo Code's is. Such a
database's own indexes are trusted then: they can call what SQLite has built in, and no more, as
no extension is loaded and nothing can be written."""

Stamps = tuple[tuple[int, int] | None, ...]


def read_database(path: str, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return what ``work`` reads: all of it as it was at one moment, what the log holds included.

    Args:
        path: of the database.
        work: gets a connection that can only read; may be called again when the first is in vain.

    Raises:
        InputError: it is locked, broken or no database.
        OSError: it cannot be opened.
    """
    for _ in range(_TRIES):
        stamps = _stamps(path)
        try:
            with closing(_opened(path, stamps)) as connection:
                done = work(connection)
        except sqlite3.Error as error:
            if _stamps(path) == stamps:
                raise _explained(path, error) from error
        else:
            if _is_logged(stamps) or _stamps(path) == stamps:
                return done
    raise InputError(path, _RESTLESS)


def columns_of(connection: sqlite3.Connection) -> Columns:
    """Return the tables of a database, views left out, with their columns."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    named = "SELECT name FROM pragma_table_info(?)"
    return {
        table: frozenset(name for (name,) in connection.execute(named, (table,)))
        for (table,) in tables
    }


def _opened(path: str, stamps: Stamps) -> sqlite3.Connection:
    with open(path, "rb") as file:  # noqa: PTH123
        head = file.read(20)
    if head[:16] != _MAGIC:
        raise InputError(path, "is empty" if not head else "is no SQLite database")
    if head[18] != _WAL_MODE:
        return _connected(path, "mode=ro")
    if not _is_logged(stamps):  # nobody writes; if somebody begins to, the stamps will differ
        return _connected(path, "mode=ro&immutable=1")
    try:
        return _connected(path, "mode=ro&readonly_shm=1")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname not in _CANNOT_OPEN:
            raise
    if os.path.exists(path + _INDEX):  # noqa: PTH110
        return _connected(path, "mode=ro")
    return _connected(f"{_copied(path, stamps).name}/copy.db", "mode=rwc")


def _connected(path: str, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(path)}?{how}", uri=True, timeout=_PATIENCE, isolation_level=None
    )
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        connection.execute("BEGIN")
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if _OWN_FUNCTION not in str(error):
                raise
            connection.execute("PRAGMA trusted_schema = ON")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


@lru_cache(maxsize=1)
def _copied(path: str, stamps: Stamps) -> TemporaryDirectory[str]:
    """Return a folder with a copy of a database and its log, whose index is missing.

    The log is copied last: what was moved from it into the database meanwhile is still in it,
    unless the log was begun anew, which its own beginning shows.
    """
    folder = TemporaryDirectory(prefix="debrief-")
    for _ in range(_TRIES):
        begun = _beginning(path + LOG)
        shutil.copyfile(path, Path(folder.name, "copy.db"))
        with suppress(FileNotFoundError):
            shutil.copyfile(path + LOG, Path(folder.name, f"copy.db{LOG}"))
        if _beginning(path + LOG) == begun:
            return folder
        time.sleep(_PATIENCE / 10)
    raise InputError(path, _RESTLESS)


def _is_logged(stamps: Stamps) -> bool:
    return stamps[1] is not None and stamps[1][0] > 0


def _beginning(log: str) -> bytes:
    with suppress(FileNotFoundError), open(log, "rb") as file:  # noqa: PTH123
        return file.read(32)
    return b""


def _stamps(path: str) -> Stamps:
    """Return the size and time of change of a database and of its log, if it has one."""
    found: list[tuple[int, int] | None] = []
    for each in (path, path + LOG):
        try:
            status = os.stat(each)  # noqa: PTH116
        except FileNotFoundError:
            found.append(None)
        else:
            found.append((status.st_size, status.st_mtime_ns))
    return tuple(found)


def _explained(path: str, error: sqlite3.Error) -> InputError:
    name = getattr(error, "sqlite_errorname", "")
    if name in _LOCKED:
        return InputError(path, "is locked by another program; close that or try again")
    if name in _CANNOT_OPEN:
        with suppress(OSError), open(path, "rb"):  # noqa: PTH123
            return InputError(path, f"cannot be opened as a database: {error}")
        return InputError(path, reason_of(PermissionError()))
    return InputError(path, f"is a broken database: {error}")

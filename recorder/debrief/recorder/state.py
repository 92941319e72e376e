"""The sessions of this machine, in one SQLite file, so that nothing is lost when a process dies.

Nothing of it is in the repository that is recorded. In ``<DEBRIEF_HOME>/recorder`` are::

    state.sqlite            sessions under way, one a worktree, with their commands, what these
                            printed and the files that they found; records that wait for a server;
                            what was sent; rules of repositories that the person agreed to
    kept/<session id>.json  records that were sent, where that was asked for
    locks/                  who holds one changes a worktree's session, or sends a record

Every step between two states of a session is one transaction, so that it is always in exactly one
of them. Texts are as they were typed and printed, secrets included, until the record is made: the
files can be read by their owner alone, and what is deleted is overwritten.
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, structs

from debrief.errors import ConfigurationError, InputError
from debrief.files import locked, make_folder, write_durably
from debrief.recorder.contracts import OUTPUT_LIMIT, CommandRules
from debrief.recorder.earlier_state import FOLDERS, take_over
from debrief.recorder.local_session import (
    CommandEnd,
    CommandStart,
    RanCommand,
    SentRecord,
    Started,
    StopOptions,
)

OUTPUT_KEPT = 8 * OUTPUT_LIMIT
"""Bytes of a command's output that are kept: more characters than a record takes, in any script,
and room for a secret where the output is cut."""
_SHORT_WAIT = 0.3
"""Seconds in which a process that only reads a session is done with it."""
_LONG_WAIT = 60.0
"""Seconds that another process may take for a transaction."""
_BROKEN = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
"""No next try can read the file."""
_INTERRUPTED = "(the recorder was ended while this ran)"
_TAKEN_OVER, _VERSION = 1, 2
"""Of the file: it has what an earlier version kept; that is gone from its folders as well."""
_TABLES = """
PRAGMA auto_vacuum = FULL;
PRAGMA journal_mode = WAL;  -- a command's output is stored while others read
CREATE TABLE IF NOT EXISTS sessions (
    id TEXT PRIMARY KEY,
    worktree BLOB NOT NULL,  -- its path
    started TEXT NOT NULL,  -- JSON, as all texts but ids and blobs are
    stop TEXT,  -- how it is stopped; none as long as its record is not for a server
    record BLOB,  -- its exact bytes; from here on it is sent as it is
    waits INTEGER NOT NULL DEFAULT 0  -- for a server; its worktree may have another session
);
CREATE UNIQUE INDEX IF NOT EXISTS one_a_worktree ON sessions (worktree) WHERE NOT waits;
CREATE TABLE IF NOT EXISTS commands (
    session TEXT REFERENCES sessions ON DELETE CASCADE, number INTEGER,
    start TEXT NOT NULL, end TEXT,
    PRIMARY KEY (session, number)
);
CREATE TABLE IF NOT EXISTS output (  -- as it came; ``at`` is in seconds since 1970
    session TEXT, number INTEGER, at REAL NOT NULL, piece BLOB NOT NULL,
    FOREIGN KEY (session, number) REFERENCES commands ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS output_of_a_command ON output (session, number);
CREATE TABLE IF NOT EXISTS blobs (  -- of the files that commands found, by git's ids
    session TEXT REFERENCES sessions ON DELETE CASCADE, id TEXT, text TEXT NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE TABLE IF NOT EXISTS sent (
    id TEXT PRIMARY KEY, stopped_at REAL NOT NULL, record TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS agreed (digest TEXT PRIMARY KEY, rules TEXT NOT NULL);
"""


class LocalSession(NamedTuple):
    """A session of this machine; what has become of it is read when it is asked for."""

    home: RecorderHome
    worktree: Path
    started: Started

    @property
    def id(self) -> str:
        """The session's id."""
        return self.started.id

    def stop_options(self) -> StopOptions | None:
        """Return what was requested at the stop; None while the record is not for a server."""
        rows = self.home.query("SELECT stop FROM sessions WHERE id = ? AND stop NOT NULL", self.id)
        return msgspec.json.decode(rows[0][0], type=StopOptions) if rows else None

    def set_stop_options(self, options: StopOptions) -> None:
        """Store how the session is to be stopped: its record is meant for a server."""
        self.home.query("UPDATE sessions SET stop = ? WHERE id = ?", _encode(options), self.id)

    def record(self) -> bytes | None:
        """Return the record's exact bytes; None before the stop, and once the session is gone."""
        rows = self.home.query("SELECT record FROM sessions WHERE id = ?", self.id)
        return rows[0][0] if rows else None

    def set_record(self, data: bytes) -> None:
        """Store the record; from here on it never changes."""
        self.home.query("UPDATE sessions SET record = ? WHERE id = ?", data, self.id)

    def wait_for_server(self) -> None:
        """Leave the worktree to another session: the record is sent later."""
        self.home.query("UPDATE sessions SET waits = 1 WHERE id = ?", self.id)

    def commands(self) -> list[RanCommand]:
        """Return all commands by start."""
        query = "SELECT number, start, end FROM commands WHERE session = ? ORDER BY number"
        pieces = "SELECT at, piece FROM output WHERE session = ? AND number = ? ORDER BY rowid"
        with self.home.connected() as state:
            return [
                _ran(
                    msgspec.json.decode(start, type=CommandStart),
                    state.execute(pieces, (self.id, number)).fetchall(),
                    msgspec.json.decode(end, type=CommandEnd) if end else None,
                )
                for number, start, end in state.execute(query, [self.id]).fetchall()
            ]

    def blobs(self) -> list[str]:
        """Return the texts of all files that commands found."""
        rows = self.home.query("SELECT text FROM blobs WHERE session = ?", self.id)
        return [text for (text,) in rows]

    def add_command(self, start: CommandStart, blobs: Mapping[str, str]) -> int:
        """Store a command that is about to be run, with the files it finds; return its number."""
        with self.home.transaction() as state:
            count = "SELECT count(*) FROM commands WHERE session = ?"
            number = int(state.execute(count, [self.id]).fetchone()[0]) + 1
            command = (self.id, number, _encode(start))
            state.execute("INSERT INTO commands (session, number, start) VALUES (?, ?, ?)", command)
            rows = [(self.id, *blob) for blob in blobs.items()]
            state.executemany("INSERT OR IGNORE INTO blobs VALUES (?, ?, ?)", rows)
        return number

    @contextmanager
    def output_of(self, number: int) -> Iterator[Callable[[bytes], object]]:
        """Yield what stores a piece of a command's output at once.

        The death of this process loses none. A power cut may lose the last ones, until the
        command's end is stored: waiting for the disk after each would hold the command up.
        """
        with self.home.connected() as state:
            state.execute("PRAGMA synchronous = NORMAL")
            query = "INSERT INTO output VALUES (?, ?, ?, ?)"
            yield lambda piece: state.execute(query, (self.id, number, time.time(), piece))

    def end_command(self, number: int, end: CommandEnd) -> None:
        """Store how a command ended."""
        query = "UPDATE commands SET end = ? WHERE session = ? AND number = ?"
        self.home.query(query, _encode(end), self.id, number)

    def remove_command(self, number: int) -> None:
        """Remove a command that could not be started."""
        self.home.query("DELETE FROM commands WHERE session = ? AND number = ?", self.id, number)


class RecorderHome:
    """The recorder's state on this machine; safe in threads and processes.

    Every method raises ``ConfigurationError`` where the file cannot be read or written, and
    ``InputError`` where a newer version wrote it.

    Args:
        home: ``DEBRIEF_HOME``.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / "recorder"
        self.file = self.path / "state.sqlite"

    @contextmanager
    def connected(self) -> Iterator[sqlite3.Connection]:
        """Yield the database, in which each statement is a transaction."""
        make_folder(self.path)
        try:
            with closing(
                sqlite3.connect(self.file, timeout=_LONG_WAIT, isolation_level=None)
            ) as state:
                state.execute("PRAGMA foreign_keys = ON")
                state.execute("PRAGMA secure_delete = ON")
                self._prepare(state)
                yield state
        except sqlite3.Error as error:
            move = "Mend that, and try again."
            if getattr(error, "sqlite_errorcode", None) in _BROKEN:
                move = "Move the file away, and keep it: what was not sent is in it."
            raise ConfigurationError(str(self.file), f"cannot be used: {error}", move) from error

    def query(self, statement: str, *values: object) -> list[Any]:
        """Execute one statement; return its rows."""
        with self.connected() as state:
            return state.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Yield the database; what the block does to it is done as a whole or not at all."""
        with self.connected() as state:
            state.execute("BEGIN IMMEDIATE")
            yield state
            state.execute("COMMIT")

    def _prepare(self, state: sqlite3.Connection) -> None:
        """Make the tables, and take over what an earlier version kept."""
        version = _version(state)
        if version == _VERSION and not self._has_folders():
            return
        if version > _VERSION:
            raise InputError(str(self.file), f"has version {version}", "Update debrief.")
        with locked(self.path / "locks" / "state", math.inf):
            version = _version(state)
            # An earlier version that is still installed may have made its folders again.
            if version < _TAKEN_OVER or (version == _VERSION and self._has_folders()):
                self.file.chmod(0o600)
                state.executescript(_TABLES)
                state.execute("BEGIN IMMEDIATE")
                take_over(self.path, state)
                state.execute(f"PRAGMA user_version = {_TAKEN_OVER}")
                state.execute("COMMIT")
            for name in FOLDERS:
                try:
                    with suppress(FileNotFoundError):
                        shutil.rmtree(self.path / name)
                except OSError as error:  # texts would stay there, where nothing looks for them
                    reason = f"is taken over, and cannot be removed: {error.strerror}"
                    raise ConfigurationError(str(self.path / name), reason, "Remove it.") from error
            state.execute(f"PRAGMA user_version = {_VERSION}")

    def _has_folders(self) -> bool:
        return any((self.path / name).is_dir() for name in ("open", "outbox"))

    @contextmanager
    def lock_worktree(self, worktree: Path) -> Iterator[None]:
        """Be the only process that changes a worktree's session.

        Raises:
            InputError: another one is at it.
        """
        with self.connected():
            pass  # takes over what an earlier version kept, which asks for this lock, too
        with locked(self._lock(worktree), _SHORT_WAIT) as mine:
            if not mine:
                raise InputError(
                    str(worktree),
                    "another process is at this worktree's session, such as a running command",
                    "Wait for its end, or interrupt it.",
                ).known_as("busy")
            yield

    @contextmanager
    def lock_record(self, session_id: str) -> Iterator[None]:
        """Be the only process that sends a session's record or removes it.

        Raises:
            InputError: another one is at it.
        """
        name = hashlib.sha256(session_id.encode()).hexdigest()[:32]
        path = self.path / "locks" / f"record-{name}"
        with locked(path, _SHORT_WAIT) as mine:
            if not mine:
                reason = "another process is sending this record"
                raise InputError(session_id, reason, "Wait for its end.").known_as("busy")
            yield
        if not self._sessions("id = ?", session_id):
            path.unlink(missing_ok=True)

    def is_busy(self, worktree: Path) -> bool:
        """Return whether a process is changing the session, as a running command is."""
        with locked(self._lock(worktree)) as mine:
            return not mine

    def _lock(self, worktree: Path) -> Path:
        return self.path / "locks" / hashlib.sha256(os.fsencode(worktree)).hexdigest()[:32]

    def open(self, worktree: Path, started: Started) -> None:
        """Store a new session of a worktree that has none."""
        query = "INSERT INTO sessions (id, worktree, started) VALUES (?, ?, ?)"
        self.query(query, started.id, os.fsencode(worktree), _encode(started))

    def session(self, worktree: Path) -> LocalSession | None:
        """Return a worktree's session under way; None where there is none."""
        return next(iter(self._sessions("NOT waits AND worktree = ?", os.fsencode(worktree))), None)

    def opened(self) -> list[LocalSession]:
        """Return the sessions under way, of all worktrees, in the order of their starts."""
        return self._sessions("NOT waits")

    def waiting(self) -> list[LocalSession]:
        """Return the sessions whose records wait for a server."""
        return self._sessions("waits")

    def unsent(self) -> list[LocalSession]:
        """Return those that wait, and those that a stop was ended with while it sent them."""
        return self._sessions("record NOT NULL AND stop NOT NULL")

    def _sessions(self, condition: str, *values: object) -> list[LocalSession]:
        query = f"SELECT worktree, started FROM sessions WHERE {condition} ORDER BY rowid"
        return [
            LocalSession(self, Path(os.fsdecode(path)), msgspec.json.decode(started, type=Started))
            for path, started in self.query(query, *values)
        ]

    def remove(self, session: LocalSession, sent: SentRecord | None = None) -> None:
        """End a session, and remember that a server took its record, if one did."""
        with self.transaction() as state:
            state.execute("DELETE FROM sessions WHERE id = ?", [session.id])
            if sent is not None:
                row = (session.id, sent.stopped_at.timestamp(), _encode(sent))
                state.execute("INSERT OR REPLACE INTO sent VALUES (?, ?, ?)", row)
        self._empty_log()

    def _empty_log(self) -> None:
        """Have no deleted text in SQLite's log, which stays while another process is at it."""
        with self.connected() as state:
            state.execute(f"PRAGMA busy_timeout = {round(_SHORT_WAIT * 1000)}")
            state.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def kept_file(self, session_id: str) -> Path:
        """Return where a record is kept after it was sent, if that is asked for."""
        return self.path / "kept" / f"{session_id}.json"

    def keep(self, session_id: str, record: bytes) -> None:
        """Keep a record's file."""
        make_folder(self.path / "kept")
        write_durably(self.kept_file(session_id), record)

    def sent(self, most: int) -> list[SentRecord]:
        """Return the records that were sent, the latest first."""
        rows = self.query("SELECT record FROM sent ORDER BY stopped_at DESC LIMIT ?", most)
        return [msgspec.json.decode(record, type=SentRecord) for (record,) in rows]

    def forget(self, session_id: str, *, act: bool) -> int:
        """Remove all that is kept of a session, or only count it; return how much that is.

        Raises:
            InputError: a process is at the session, such as a running command, or sends its record.
        """
        kept = self.kept_file(session_id)
        with ExitStack() as held:
            if act and self.path.is_dir():
                for session in self._sessions("NOT waits AND id = ?", session_id):
                    held.enter_context(self.lock_worktree(session.worktree))
                if self._sessions("id = ?", session_id):
                    held.enter_context(self.lock_record(session_id))
            return self._forget(session_id, kept, act=act)

    def _forget(self, session_id: str, kept: Path, *, act: bool) -> int:
        found = 0
        for table in ("sessions", "sent") if self.path.is_dir() else ():
            found += len(self.query(f"SELECT 1 FROM {table} WHERE id = ?", session_id))
            if act:
                self.query(f"DELETE FROM {table} WHERE id = ?", session_id)
                self._empty_log()
        if "/" not in session_id and kept.is_file():
            found += 1
            if act:
                kept.unlink()
        return found

    def has_agreed(self, digest: str) -> bool:
        """Return whether the person agreed to a repository's rules."""
        return bool(self.query("SELECT 1 FROM agreed WHERE digest = ?", digest))

    def agree(self, rules: CommandRules) -> None:
        """Remember that the person saw rules and agreed to them."""
        row = (rules.digest, rules.model_dump_json(by_alias=True))
        self.query("INSERT OR REPLACE INTO agreed VALUES (?, ?)", *row)


def _ran(
    start: CommandStart, pieces: Sequence[tuple[float, bytes]], end: CommandEnd | None
) -> RanCommand:
    output = b"".join(piece for _, piece in pieces)
    last = max([start.started_at.timestamp(), *(at for at, _ in pieces)])
    unseen = CommandEnd(
        exit_code=None,
        ending=_INTERRUPTED,
        duration_ms=round((last - start.started_at.timestamp()) * 1000),
        cut=len(output) >= OUTPUT_KEPT,
    )
    return RanCommand(
        cmd=start.cmd,
        args=start.args,
        cwd=start.cwd,
        output=output.decode("utf-8", "replace").replace("\0", "\ufffd"),
        is_over=end is not None,
        state=start.state,
        **structs.asdict(end or unseen),
    )


def _encode(value: Struct) -> str:
    return msgspec.json.encode(value).decode()


def _version(state: sqlite3.Connection) -> int:
    (version,) = state.execute("PRAGMA user_version").fetchone()
    return int(version)

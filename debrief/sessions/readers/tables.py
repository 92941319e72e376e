"""The base of sources that keep their sessions in an SQLite database, a session in some rows."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any

import orjson
from msgspec import Struct

from debrief.errors import InputError
from debrief.sessions.model import TranscriptRef
from debrief.sessions.readers.assembly import TranscriptDraft
from debrief.sessions.readers.base import (
    Claims,
    Head,
    NoSession,
    Peek,
    Transcript,
    TranscriptReader,
)
from debrief.sessions.readers.databases import LOG, columns_of, read_database
from debrief.sessions.readers.documents import decoded
from debrief.sessions.readers.files import FileStamp, Walk, reason_of
from debrief.sessions.readers.values import string


class SessionInDatabase(Struct, frozen=True):
    """One session, as a look at the tables shows it."""

    id: str
    parent: str = ""
    started: datetime | None = None
    rows: int = 0
    """How many there are of it: without any it is no session."""
    changed: str = ""
    """Differs whenever its rows do."""


class DatabaseReader(TranscriptReader):
    """Reads a source whose sessions are in databases, those of subagents beside their parents'.

    A source defines the class variables, ``listed`` and ``draft_of``; where its older versions
    wrote files, ``claims``, ``describe`` and ``read_file`` as well.
    """

    suffixes: tuple[str, ...] = ()
    databases: tuple[str, ...]
    """What the databases are called."""
    needed: Mapping[str, frozenset[str]]
    """The tables that they have, each with the columns that it has at least."""

    @abstractmethod
    def listed(self, connection: Connection) -> list[SessionInDatabase]:
        """Return the sessions of a database."""

    @abstractmethod
    def draft_of(self, connection: Connection, id: str, draft: TranscriptDraft) -> None:
        """Read one session of a database."""

    def family(self, connection: Connection, id: str) -> list[SessionInDatabase]:
        """Return a session with those that came of it; empty where it is there no more."""
        sessions = [database for database in self.listed(connection) if database.rows]
        return next((tree for tree in _trees(sessions) if tree[0].id == id), [])

    def claims(self, head: bytes, path: str) -> bool:
        """Return whether a file with this beginning is the source's."""
        return False

    def describe(self, head: Head, path: str) -> Peek | None:
        """Return what the beginning of a file says."""
        return None

    def read_file(self, path: str) -> TranscriptDraft:
        """Read one file that is no database."""
        raise ValueError(f"no transcript of {self.tool}")

    def transcripts(self, walk: Walk, claims: Claims) -> Iterator[Transcript]:
        """Yield files, in path order, and then databases' sessions."""
        yield from super().transcripts(walk, claims)
        here = {file.path for file in walk.files}
        for path in walk.paths(self.databases, self.source):
            if Path(path).name in self.databases:
                yield from self._in_database(path, (path + LOG,) if path + LOG in here else ())

    def _in_database(self, path: str, log: tuple[str, ...]) -> Iterator[Transcript]:
        try:
            sessions = read_database(path, self._listed)
        except (InputError, OSError):  # a look at it says why
            yield Transcript(source=self.source, path=path, companions=log)
            return
        for tree in _trees([session for session in sessions or () if session.rows]):
            place = f"{path}#{tree[0].id}"
            changed = hashlib.sha256(orjson.dumps([database.changed for database in tree])).digest()
            yield Transcript(
                source=self.source,
                path=place,
                companions=(path, *log),
                file=path,
                stamp=FileStamp(
                    place,
                    sum(database.rows for database in tree),
                    int.from_bytes(changed[:6], "big"),
                ),
                peek=Peek(session_id=tree[0].id, started=tree[0].started, parent=tree[0].parent),
            )

    def _listed(self, connection: Connection) -> list[SessionInDatabase] | None:
        """Return the sessions of a database; None where its tables are another program's."""
        tables = columns_of(connection)
        if any(not columns <= tables.get(name, set()) for name, columns in self.needed.items()):
            return None
        connection.row_factory = Row
        return self.listed(connection)

    def peek(self, transcript: Transcript) -> Peek | None:
        """Look at the beginning.

        Raises:
            InputError: it is a database that cannot be read.
        """
        if transcript.peek is not None or not transcript.path.endswith(self.databases):
            return super().peek(transcript)
        try:
            read_database(transcript.path, self._listed)
        except OSError as error:
            raise InputError(transcript.path, reason_of(error)) from error
        return None

    def read_main(self, transcript: Transcript) -> TranscriptDraft:
        """Read a file, or a session of a database with those of its subagents."""
        file = transcript.on_disk
        if not file.endswith(self.databases):
            return self.read_file(transcript.path)
        id = transcript.path[len(file) + 1 :]

        def read(connection: Connection) -> list[TranscriptDraft]:
            connection.row_factory = Row
            return [
                self._draft(connection, database, file) for database in self.family(connection, id)
            ]

        drafts = read_database(file, read)
        if not drafts:
            raise NoSession(transcript.path, "is in its database no more")
        main, *agents = drafts
        main.agents = {agent.id: agent for agent in agents}
        return main

    def _draft(
        self, connection: Connection, session: SessionInDatabase, file: str
    ) -> TranscriptDraft:
        draft = TranscriptDraft(f"{file}#{session.id}")
        draft.id, draft.parent = session.id, session.parent
        draft.began = session.started
        self.draft_of(connection, session.id, draft)
        digest = hashlib.sha256(f"{session.rows} {session.changed}".encode()).hexdigest()
        draft.references.append(
            TranscriptRef(path=draft.path, digest=digest, size=0, records=session.rows)
        )
        return draft


def json_in(row: Row | dict[str, Any], column: str, draft: TranscriptDraft) -> Any:
    """Return the JSON value in a row's column; None, reported, where there is none."""
    try:
        value, mended = decoded(string(row[column]).encode())
    except ValueError as error:
        draft.report(0, f"the row {row['id']} cannot be read: {error}")
        return None
    if mended:
        draft.report(0, f"in the row {row['id']}, {mended}")
    return value


def _trees(sessions: list[SessionInDatabase]) -> Iterator[list[SessionInDatabase]]:
    """Yield the sessions that nobody at hand began, each with those that came of it behind it."""
    known = {session.id for session in sessions}
    children: dict[str, list[SessionInDatabase]] = {}
    for session in sessions:
        children.setdefault(session.parent if session.parent in known else "", []).append(session)
    for top in children.get("", ()):
        tree = [top]
        for database in tree:
            tree += children.get(database.id, ())
        yield tree

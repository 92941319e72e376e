"""OpenCode's database: what sessions are in it, and one session of it as an export has it.

From 1.2 on, ``session``, ``message`` and ``part``, with the JSON of exports in ``data``. From 2.0
on, ``session_v2`` and ``session_message``, beside the older tables where it took a database over;
before its release, ``session_message`` belonged to ``session``. A session may be in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from sqlite3 import Connection
from typing import Any, Literal

import orjson
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.sessions.model import Problem, TranscriptRef
from debrief.sessions.readers.base import NoSession
from debrief.sessions.readers.databases import Columns, columns_of, read_database
from debrief.sessions.readers.documents import JsonRecord, decoded
from debrief.sessions.readers.files import reason_of
from debrief.sessions.readers.opencode.conversion import Said, as_said

Form = Literal["1", "2"]
"""Of the tables: OpenCode 1's or 2's."""

_NEEDED: dict[str, set[str]] = {
    "session": {"id", "parent_id", "time_created", "time_updated"},
    "session_v2": {"id", "parent_id", "time_created", "time_updated"},
    "message": {"id", "session_id", "time_created", "time_updated", "data"},
    "part": {"id", "message_id", "session_id", "time_updated", "data"},
    "session_message": {"id", "session_id", "type", "seq", "time_updated", "data"},
}
_OTHER = "moved from another version in part, or written by a version to come"
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


class SessionInTables(Struct, frozen=True):
    """One session, as a look at the tables shows it."""

    id: str
    parent: str
    created: int
    """In milliseconds, as the next."""
    changed: int
    rows: int
    """Messages and parts."""
    times: int
    """When each of these was changed, added up: another change anywhere means another sum."""


class SessionRows(Struct):
    """One session as it is in the tables."""

    info: JsonRecord
    messages: list[Said]
    reference: TranscriptRef
    problems: list[Problem]

    def exported(self) -> bytes:
        """Return it as an export."""
        said = [{"info": info, "parts": parts} for info, parts in self.messages]
        return orjson.dumps({"info": self.info, "messages": said})


class DatabasePath(Struct, frozen=True):
    """A session in a database; or the tables of one form, or all of it, without an id."""

    database: str
    form: Form | None = None
    id: str = ""

    @classmethod
    def of(cls, path: str, database: str) -> DatabasePath | None:
        """Return the place that a transcript's path names; None when it is in no database.

        Args:
            path: what the property of that name gave.
            database: the file that it is a part of.
        """
        if not database.endswith(".db"):
            return None
        form, _, id = path[len(database) + 1 :].partition("/")
        return cls(database, "2" if form == "2" else "1" if form == "1" else None, id)

    @property
    def path(self) -> str:
        """What the transcript is called."""
        parts = (self.form, self.id)
        return "#".join(filter(None, (self.database, "/".join(part for part in parts if part))))

    def sessions(self) -> list[SessionRows]:
        """Return the session, and behind it those of its subagents, as they are at one moment.

        Raises:
            InputError: they cannot be read, or are there no more.
            OSError: the database cannot be opened.
        """
        form = self.form
        if form is None or not self.id:
            raise self.refusal()

        def read(opened: Connection) -> list[SessionRows]:
            ids = _tree(opened, form, self.id)
            return [_session(opened, replace(self, id=id), form) for id in ids]

        sessions = read_database(self.database, read)
        if not sessions:
            raise NoSession(self.path, "is in its database no more")
        return sessions

    def refusal(self) -> InputError:
        """Return why no session can be read here."""
        try:
            forms = read_database(self.database, forms_of)
            trees_in(self.database)
        except InputError as error:
            return error
        except OSError as error:
            return InputError(self.database, reason_of(error))
        if not forms:
            return InputError(self.database, f"it has no table of sessions: {_OTHER}")
        wrong = [reason for form, reason in forms.items() if form == self.form and reason]
        if wrong:
            return InputError(self.path, f"{wrong[0]}: {_OTHER}")
        return NoSession(self.path, "no session is in it")


def trees_in(database: str) -> dict[Form, list[list[SessionInTables]] | None]:
    """Return each form's sessions, every one with its subagents' behind it; None for a broken form.

    Raises:
        InputError: the database cannot be read.
        OSError: it cannot be opened.
    """
    return read_database(
        database,
        lambda opened: {
            form: None if wrong else _trees(_rows(opened, form))
            for form, wrong in forms_of(opened).items()
        },
    )


def forms_of(connection: Connection) -> dict[Form, str]:
    """Return the forms that a database's tables have, each with what is wrong with them, if any."""
    tables = columns_of(connection)
    forms: dict[Form, str] = {}
    if "session" in tables and ("session_v2" not in tables or "message" in tables):
        forms["1"] = _lacking(tables, "session", "message", "part")
    if "session_v2" in tables:
        forms["2"] = _lacking(tables, "session_v2", "session_message")
    elif "session_message" in tables and not _lacking(tables, "session", "session_message"):
        talk = "SELECT 1 FROM session_message WHERE type IN ('user', 'assistant') LIMIT 1"
        if connection.execute(talk).fetchone():
            forms["2"] = ""
    return forms


def _rows(connection: Connection, form: Form) -> dict[str, SessionInTables]:
    table = _sessions(connection, form)
    found = f"SELECT id, parent_id, time_created, time_updated FROM {table}"
    sessions = {str(row[0]): row[1:] for row in connection.execute(f"{found} ORDER BY id")}
    counts: dict[str, int] = {}
    latest: dict[str, int] = {}
    times: dict[str, int] = {}
    for each in ("message", "part") if form == "1" else ("session_message",):
        counted = f"SELECT session_id, count(*), max(time_updated), sum(time_updated) FROM {each}"
        for id, count, changed, total in connection.execute(f"{counted} GROUP BY session_id"):
            counts[id] = counts.get(id, 0) + count
            latest[id] = max(latest.get(id, 0), _number(changed))
            times[id] = times.get(id, 0) + _number(total)
    return {
        id: SessionInTables(
            id,
            parent if type(parent) is str else "",
            _number(created),
            max(_number(updated), latest.get(id, 0)),
            counts.get(id, 0),
            times.get(id, 0) + _number(updated),
        )
        for id, (parent, created, updated) in sessions.items()
        if form == "1" or id in counts
    }


def _trees(rows: dict[str, SessionInTables]) -> list[list[SessionInTables]]:
    """Return the sessions that nobody at hand began, each with those that came of it behind it."""
    children: dict[str, list[str]] = {}
    for row in rows.values():
        children.setdefault(row.parent, []).append(row.id)
    left, trees = dict.fromkeys(rows), list[list[SessionInTables]]()
    tops = [row.id for row in rows.values() if row.parent not in rows]
    for top in (*tops, *rows):  # the latter for circles
        if top in left:
            del left[top]
            tree = [top]
            for id in tree:
                new = [each for each in children.get(id, ()) if each in left]
                tree += new
                for each in new:
                    del left[each]
            trees.append([rows[id] for id in tree])
    return trees


def _tree(connection: Connection, form: Form, id: str) -> Iterable[str]:
    table = _sessions(connection, form)
    query = f"""
        WITH RECURSIVE tree(id) AS (
            SELECT id FROM {table} WHERE id = ?
            UNION SELECT {table}.id FROM {table} JOIN tree ON {table}.parent_id = tree.id
        )
        SELECT {table}.id FROM tree JOIN {table} USING (id)
        ORDER BY id <> ?, time_created, id
    """
    return [str(row[0]) for row in connection.execute(query, (id, id))]


def _session(connection: Connection, place: DatabasePath, form: Form) -> SessionRows:
    table = _sessions(connection, form)
    cursor = connection.execute(f"SELECT * FROM {table} WHERE id = ?", (place.id,))
    names = [column[0] for column in cursor.description]
    info = _info(dict(zip(names, cursor.fetchone(), strict=True)))
    rows = _Rows(connection, place.path)
    messages = _first(rows, place.id) if form == "1" else _second(rows, place.id)
    reference = TranscriptRef(
        path=place.path, digest=rows.sha.hexdigest(), size=rows.size, records=rows.count
    )
    return SessionRows(info, messages, reference, rows.problems)


class _Rows:
    """The JSON of rows, one after another."""

    def __init__(self, connection: Connection, path: str) -> None:
        self._connection, self._path = connection, path
        self.problems: list[Problem] = []
        self.sha, self.size, self.count = hashlib.sha256(), 0, 0

    def records(self, query: str, id: str) -> Iterator[tuple[str, str, JsonRecord]]:
        """Yield the two names and the JSON object of each row, those left out that have none.

        Args:
            query: selects two names and the text, as bytes.
            id: what it asks for.
        """
        rows = self._connection.execute(query, (id,)).fetchall()
        texts = [row[2] if type(row[2]) is bytes else b"" for row in rows]
        joined = b",".join(texts)
        self.sha.update(joined)
        self.size += len(joined)
        try:  # all at once takes half the time
            values = orjson.loads(b"[%b]" % joined)
        except orjson.JSONDecodeError:
            values = []
        if len(values) != len(rows):
            values = map(self._decoded, rows, texts)
        for (first, second, _), value in zip(rows, values, strict=True):
            if type(value) is dict:
                self.count += 1
                yield first, second, value
            elif value is not None:
                self._report(f"the row {first} holds no JSON object")

    def _decoded(self, row: tuple[str, str, object], text: bytes) -> Any:
        try:
            value, mended = decoded(text)
        except ValueError as error:
            self._report(f"the row {row[0]} cannot be read: {error}")
            return None
        if mended:
            self._report(f"in the row {row[0]}, {mended}")
        return value

    def _report(self, reason: str) -> None:
        self.problems.append(Problem(path=self._path, line=0, reason=reason))


def _first(rows: _Rows, id: str) -> list[Said]:
    messages = "SELECT id, '', CAST(data AS BLOB) FROM message WHERE session_id = ?"
    said: dict[str, Said] = {}
    for key, _, record in rows.records(f"{messages} ORDER BY time_created, id", id):
        record["id"] = key
        said[key] = (record, [])
    parts = "SELECT id, message_id, CAST(data AS BLOB) FROM part WHERE session_id = ?"
    # Sorted here: SQLite would move the texts about, which takes as long as decoding them.
    listed = sorted(rows.records(parts, id), key=lambda row: str(row[0]))
    for key, message, part in listed:
        if message in said:
            part["id"] = key
            said[message][1].append(part)
    return list(said.values())


def _second(rows: _Rows, id: str) -> list[Said]:
    messages = "SELECT id, type, CAST(data AS BLOB) FROM session_message WHERE session_id = ?"
    listed = rows.records(f"{messages} ORDER BY seq", id)
    return [each for key, kind, record in listed for each in as_said(key, kind, record)]


def _info(row: dict[str, Any]) -> JsonRecord:
    """Return a row of a session as an export tells it."""
    names = {"id": "id", "title": "title", "directory": "directory", "version": "version"}
    names["parent_id"] = "parentID"
    info: JsonRecord = {new: row[old] for old, new in names.items() if row.get(old)}
    info["time"] = {"created": row["time_created"], "updated": row["time_updated"]}
    counts = {name: row.get(f"tokens_{name}") for name in _TOKENS}
    if any(counts.values()):
        cache = {"read": counts.pop("cache_read"), "write": counts.pop("cache_write")}
        info["tokens"] = {**counts, "cache": cache}
    return info


def _sessions(connection: Connection, form: Form) -> str:
    newer = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = 'session_v2'"
    return "session_v2" if form == "2" and connection.execute(newer).fetchone() else "session"


def _lacking(tables: Columns, *needed: str) -> str:
    missing = [table for table in needed if table not in tables]
    if missing:
        return f"its table {missing[0]} is missing"
    for table in needed:
        if left := sorted(_NEEDED[table] - tables[table]):
            return f"its table {table} has no column {left[0]}"
    return ""


def _number(value: Any) -> int:
    return value if type(value) is int else 0

"""The index: an SQLite file with what lists of sessions show, and with their words to search.

It is made from the lake, a week at a time, and follows it: weeks whose files changed are read
again. It may be deleted at any time. What cannot be read is said on the pages, and costs no other
week.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
from msgspec import Struct

from debrief.errors import DebriefError, InputError, LakeError
from debrief.files import locked, make_private
from debrief.friction.schema import ALL, RECURRING, RecurringFriction
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.models.session_cost import Prices
from debrief.outcomes.store import LABELS
from debrief.outcomes.verdicts import SCORES
from debrief.questions.schema import answers_by_question, facets_in
from debrief.scoring.model import FACETS
from debrief.sessions.store import only_one
from debrief.signals.schema import TABLE as SIGNALS
from debrief.view.indexed import (
    DECIDED,
    MADE_LATER,
    SessionRow,
    decided_by_labels,
    labels_of,
    session_events_of_week,
    texts_of_week,
    week_rows,
)

FORMAT = 7
"""Raised when the same lake gives other rows."""
PAUSE = 1.0
"""Seconds in which the lake's files are listed once at most."""
WAIT, FIRST_WAIT = 0.4, 1.0
"""Seconds that a page waits for an index that is behind, and for the first week of one that holds
none; then it shows what there is."""
_STEP = 0.05
_PATIENCE = 5.0
"""Seconds to wait for another process that writes the file."""
_PRICED = "prices"
TEXTS, ROWS = "raw_sessions", ("session_metadata", SIGNALS, SCORES, "judge_evaluations", FACETS)
"""The table that a week's words are from, and those that its rows are from as well."""
_COLUMNS = SessionRow.__struct_fields__
_SCHEMA = f"""
    CREATE TABLE sessions (
        number INTEGER PRIMARY KEY,
        {", ".join(f"{name} {'UNIQUE' if name == 'id' else ''}" for name in _COLUMNS)}
    );
    CREATE INDEX sessions_by_week ON sessions (week);
    CREATE INDEX sessions_by_start ON sessions (started);
    CREATE TABLE labels (session_id, name, value, source, rater, said);
    CREATE INDEX labels_by_session ON labels (session_id);
    CREATE TABLE decided (session_id PRIMARY KEY, verdict, basis, reviewer);
    CREATE TABLE session_events (session_id, week, kind, count);
    CREATE INDEX session_events_by_kind ON session_events (kind, session_id);
    CREATE TABLE facets (question, session_id, week, found, answer);
    CREATE INDEX facets_by_question ON facets (question, session_id);
    CREATE TABLE friction (friction, session_id, PRIMARY KEY (friction, session_id));
    CREATE TABLE versions (table_name, week, version, PRIMARY KEY (table_name, week));
    CREATE VIRTUAL TABLE texts USING fts5 (
        prompts, answers, actions, tokenize = 'porter unicode61'
    );
"""
_WITH_LABELS = f"""
    UPDATE sessions SET
        labels = ifnull((SELECT group_concat(said, ' · ') FROM (
            SELECT DISTINCT said FROM labels WHERE session_id = sessions.id ORDER BY said)), ''),
        ({", ".join(DECIDED)}) = (
            SELECT
                ifnull(decided.verdict, review_verdict),
                ifnull(decided.basis, iif(reviewed_by = '', '', 'review')),
                ifnull(decided.reviewer, reviewed_by),
                iif(decided.verdict IS NULL, review_reason, ''),
                iif(decided.verdict IS NULL, review_turn, NULL)
            FROM (SELECT 1) LEFT JOIN decided ON session_id = sessions.id)
"""
"""Has a session show what people said of it; where nobody decided, its review's verdict counts."""
_VERSION = crc32(f"{FORMAT} {_SCHEMA}".encode()) & 0x7FFF_FFFF
"""In the file: one with other tables or columns is made anew."""


def index_file(lake: Lake, folder: Path) -> Path:
    """Return where the index of a lake is kept in a folder."""
    return folder / f"{digest_of(lake.url)[:16]}.sqlite"


class Progress(Struct, frozen=True):
    """How far the index is."""

    done: int = 0
    """Weeks of those that are read now."""
    weeks: int = 0
    problems: tuple[str, ...] = ()
    """What could not be read: the file, why, and what to do."""
    is_listed: bool = True
    """Something is known of the lake by now."""

    @property
    def is_behind(self) -> bool:
        """Whether weeks are still being read, or looked for."""
        return self.done < self.weeks or not self.is_listed


class Index:
    """What a lake's lists show, in a file of this machine.

    Args:
        lake: what it is made from.
        folder: where the file is kept.
        prices: a file of one's own prices of models.
    """

    def __init__(self, lake: Lake, folder: Path, prices: Path = Path()) -> None:
        self._lake = lake
        self._prices = prices
        make_private(folder)
        self.path = index_file(lake, folder)
        self.progress = Progress()
        self.changes = 0
        """How often something was read into it since it was opened: pages follow it."""
        self._worker: threading.Thread | None = None
        self._checked = 0.0
        self._guard = threading.Lock()
        with locked(self.path.with_suffix(".lock"), timeout=10):
            self._make()
        is_known = bool(self.select("SELECT 1 FROM sessions LIMIT 1"))
        self.progress = Progress(is_listed=is_known)

    def _make(self) -> None:
        """Make the file, unless there is one of this version; a damaged one is made anew."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as database:
                if database.execute("PRAGMA user_version").fetchone()[0] == _VERSION:
                    return
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                raise self._unusable(error) from None
        for leftover in self.path.parent.glob(f"{self.path.name}*"):
            leftover.unlink()
        with self._opened() as new:
            new.execute("PRAGMA journal_mode = WAL")
            new.executescript(f"{_SCHEMA} PRAGMA user_version = {_VERSION};")

    def _unusable(self, error: sqlite3.Error) -> LakeError:
        return LakeError(str(self.path), f"cannot be used ({error})", "Remove it: it is made anew.")

    def select(self, sql: str, parameters: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        """Return the rows of a query, each of which can be read by column and by place."""
        with self._opened() as database:
            database.row_factory = sqlite3.Row
            return database.execute(sql, parameters).fetchall()

    def find(self, session_id: str) -> SessionRow:
        """Return a session by its id, or by the beginning of its id.

        Raises:
            InputError: there is none, there are several, or the beginning is too short.
        """
        for row in self.sessions("id = ?", (session_id,)):
            return row
        begin = "SELECT id FROM sessions WHERE ? != '' AND instr(id, ?) = 1"
        ids = (row[0] for row in self.select(begin, (session_id, session_id)))
        if (found := only_one(session_id, ids)) is not None:
            return self.find(found)
        if self.progress.is_behind:
            raise InputError(session_id, "is not among the sessions read so far", "Wait a moment.")
        raise InputError(session_id, "is no session of this lake", "Search the list of sessions.")

    def sessions(
        self,
        where: str = "true",
        parameters: Sequence[Any] | dict[str, Any] = (),
        order: str = "started DESC",
        limit: int = -1,
    ) -> list[SessionRow]:
        """Return the sessions for which an SQL expression is true.

        Args:
            where: the expression.
            parameters: of the expression.
            order: the columns to sort by.
            limit: how many at most; -1: all.
        """
        names = ", ".join(_COLUMNS)
        sql = f"SELECT {names} FROM sessions WHERE {where} ORDER BY {order} LIMIT {limit:d}"
        found = self.select(sql, parameters)
        return [msgspec.convert(dict(row), SessionRow, strict=False) for row in found]

    def with_ids(self, ids: Iterable[str]) -> dict[str, SessionRow]:
        """Return the sessions that are there of some ids, by id."""
        chosen = list(ids)
        marks = ", ".join("?" * len(chosen))
        return {row.id: row for row in self.sessions(f"id IN ({marks})", chosen)}

    def follow(self, wait: float = WAIT) -> None:
        """Have the index follow the lake in the background, and wait for it for a moment."""
        with self._guard:
            is_running = self._worker is not None and self._worker.is_alive()
            if not is_running and time.monotonic() - self._checked > PAUSE:
                self._worker = threading.Thread(target=self.refresh, daemon=True)
                self._worker.start()
            worker = self._worker
        if worker is not None:
            worker.join(wait)
            while wait and self._is_empty and worker.is_alive() and wait < FIRST_WAIT:
                worker.join(_STEP)
                wait += _STEP

    @property
    def _is_empty(self) -> bool:
        """Whether there is something to read and nothing is read yet."""
        return self.progress.is_behind and not self.select("SELECT 1 FROM sessions LIMIT 1")

    def expire(self) -> None:
        """Have the next page look at the lake again, however short ago one did."""
        self._checked = 0.0

    def refresh(self) -> None:
        """Read what changed in the lake since the last time."""
        with locked(self.path.with_suffix(".lock"), timeout=60) as is_alone:
            try:
                if is_alone:
                    self._make()
                    self._refresh()
            except DebriefError as error:
                self.progress = Progress(problems=(str(error),))
        self._checked = time.monotonic()

    def _refresh(self) -> None:
        tables = (TEXTS, *ROWS, LABELS, RECURRING)
        now = {name: self._lake.versions(name) for name in tables}
        now[_PRICED] = {"": _digest_of_file(self._prices)}
        known: dict[str, dict[str, str]] = {name: {} for name in now}
        for name, week, version in self.select("SELECT table_name, week, version FROM versions"):
            known[name][week] = version
        is_repriced = now[_PRICED] != known[_PRICED]
        stale = [
            week
            for week in sorted({*now[TEXTS], *known[TEXTS]}, reverse=True)
            if is_repriced
            or any(now[name].get(week) != known[name].get(week) for name in (TEXTS, *ROWS))
        ]
        problems: list[str] = []
        self.progress = Progress(0, len(stale))
        if stale or now[LABELS] != known[LABELS]:
            try:
                with self._writing() as database:
                    self._read_labels(database)
                    for source in {*now[LABELS], *known[LABELS]}:
                        _note(database, source, {LABELS: now[LABELS].get(source)})
                self.changes += now[LABELS] != known[LABELS]
            except DebriefError as error:
                problems.append(str(error))
        if now[RECURRING] != known[RECURRING]:
            try:
                with self._writing() as database:
                    self._read_friction(database)
                    _note(database, ALL, {RECURRING: now[RECURRING].get(ALL)})
                self.changes += 1
            except DebriefError as error:
                problems.append(str(error))
        for number, week in enumerate(stale):
            self.progress = Progress(number, len(stale), tuple(problems))
            try:
                with self._writing() as database:
                    is_new = is_repriced or now[TEXTS].get(week) != known[TEXTS].get(week)
                    self._read_week(database, week, with_texts=is_new)
                    _note(database, week, {name: now[name].get(week) for name in (TEXTS, *ROWS)})
                self.changes += 1
            except DebriefError as error:
                problems.append(str(error))
        if is_repriced and not problems:
            with self._writing() as database:
                _note(database, "", {_PRICED: now[_PRICED].get("")})
        self.progress = Progress(len(stale), len(stale), tuple(dict.fromkeys(problems)))

    def _read_friction(self, database: sqlite3.Connection) -> None:
        database.execute("DELETE FROM friction")
        rows = self._lake.read(RECURRING, ALL, RecurringFriction)
        pairs = [(row.id, session) for row in rows for session in row.sessions]
        database.executemany("INSERT INTO friction VALUES (?, ?)", pairs)

    def _read_week(self, database: sqlite3.Connection, week: str, *, with_texts: bool) -> None:
        """Replace a week's rows; its words only where the sessions themselves changed."""
        rows = week_rows(self._lake, week)
        if with_texts:
            old = "SELECT number FROM sessions WHERE week = ?"
            database.execute(f"DELETE FROM texts WHERE rowid IN ({old})", (week,))
            database.execute("DELETE FROM sessions WHERE week = ?", (week,))
            for session, texts in texts_of_week(self._lake, week, Prices(self._prices)):
                # A session whose week changed is in two weeks until the other one is read.
                for (number,) in database.execute(
                    "SELECT number FROM sessions WHERE id = ?", (session.id,)
                ).fetchall():
                    database.execute("DELETE FROM texts WHERE rowid = ?", (number,))
                    database.execute("DELETE FROM sessions WHERE number = ?", (number,))
                values = list(msgspec.to_builtins(session).values())
                marks = ", ".join("?" * len(_COLUMNS))
                added = database.execute(f"INSERT INTO sessions VALUES (NULL, {marks})", values)
                database.execute(
                    "INSERT INTO texts (rowid, prompts, answers, actions) VALUES (?, ?, ?, ?)",
                    (added.lastrowid, *texts),
                )
        unset = ", ".join(f"{name} = ?" for name in MADE_LATER)
        database.execute(
            f"UPDATE sessions SET {unset} WHERE week = ?", (*MADE_LATER.values(), week)
        )
        for session_id, columns in rows.items():
            assigned = ", ".join(f"{name} = ?" for name in columns)
            database.execute(
                f"UPDATE sessions SET {assigned} WHERE id = ?", (*columns.values(), session_id)
            )
        database.execute("DELETE FROM facets WHERE week = ?", (week,))
        answered = (
            (facet.question_id, facet.session_id, week, facet.found, facet.answer)
            for answers in answers_by_question(facets_in(self._lake, [week])).values()
            for facet in answers.values()
        )
        database.executemany("INSERT INTO facets VALUES (?, ?, ?, ?, ?)", answered)
        database.execute("DELETE FROM session_events WHERE week = ?", (week,))
        happened = session_events_of_week(self._lake, week)
        database.executemany("INSERT INTO session_events VALUES (?, ?, ?, ?)", happened)
        database.execute(f"{_WITH_LABELS} WHERE week = ?", (week,))

    def _read_labels(self, database: sqlite3.Connection) -> None:
        """Read what people said, and the verdicts that they and outcomes give."""
        database.execute("DELETE FROM labels")
        labels = labels_of(self._lake)
        database.executemany("INSERT INTO labels VALUES (?, ?, ?, ?, ?, ?)", labels)
        database.execute("DELETE FROM decided")
        decided = decided_by_labels(self._lake)
        database.executemany("INSERT INTO decided VALUES (?, ?, ?, ?)", decided)
        database.execute(_WITH_LABELS)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE)) as database:
                yield database
        except sqlite3.DatabaseError as error:
            raise self._unusable(error) from error

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as database, database:
            yield database


_Versions = Mapping[str, Mapping[str, str]]
"""What the file system says of each partition of each table."""


def _digest_of_file(path: Path) -> str:
    return digest_of(path.read_text(errors="replace")) if path.is_file() else "none"


def _note(database: sqlite3.Connection, week: str, versions: dict[str, str | None]) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO versions VALUES (?, ?, ?)",
        [(name, week, version) for name, version in versions.items() if version is not None],
    )
    gone = [(name, week) for name, version in versions.items() if version is None]
    database.executemany("DELETE FROM versions WHERE table_name = ? AND week = ?", gone)

"""The store of records: the one door to the recorder's database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal
from uuid import UUID

from debrief.errors import DebriefError, InputError
from debrief.recorder.contracts import NewTask, Status, StoredSession, Task
from debrief.recorder.errors import ConflictError, StorageError
from debrief.recorder.storage import benchmarks, groups, migrating, sessions, tokens
from debrief.recorder.storage.connecting import at_once, explained, make_engine
from debrief.recorder.storage.exporting import Export
from debrief.recorder.storage.groups import Arrival, Outcome
from debrief.recorder.storage.rows import (
    EVERYTHING,
    Benchmark,
    BenchmarkFilter,
    Holdings,
    NewBenchmark,
    NewRow,
    Page,
    Scope,
    SessionFilter,
    Token,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection


class RecordStore:
    """Tasks, sessions, tokens and benchmarks in one Postgres database.

    Safe to share between threads; not between a process and its forks. Every method raises
    ``StorageError`` when the database is away or busy, and leaves nothing half done: what was not
    answered can be asked again.

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

    def __enter__(self) -> RecordStore:
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
        """Make sure that the database answers and is as this version needs it.

        Raises:
            StorageError: it does not, or it is not.
        """
        with self._connection() as connection:
            revision = migrating.current(connection)
            encoding = connection.exec_driver_sql("SHOW server_encoding").scalar_one()
        if encoding != "UTF8":
            raise StorageError(
                "the database", f"has encoding {encoding}", "Make one with encoding UTF8."
            )
        migrating.require(revision)

    def revision(self) -> str | None:
        """Return the database's revision; None where nothing was made yet."""
        with self._connection() as connection:
            return migrating.current(connection)

    def migrate(self, revision: str = "head") -> tuple[str | None, str | None]:
        """Bring the database to a revision, forwards or back, all of it or nothing.

        Processes that do so at once wait for each other.

        Returns:
            The revisions before and after.

        Raises:
            StorageError: the database was made by a newer version.
            InputError: there is no such revision.
        """
        with self._transaction() as connection:
            return migrating.migrate(connection, revision)

    def tasks(self) -> tuple[Task, ...]:
        """Return all tasks, by id."""
        with self._connection() as connection:
            return sessions.tasks(connection)

    def task(self, id: str) -> Task:
        """Return one task.

        Raises:
            NotFoundError: there is none.
        """
        with self._connection() as connection:
            return sessions.task(connection, id)

    def add_task(self, task: NewTask) -> Task:
        """Make a task; the same again is the same.

        Raises:
            ConflictError: another one has that id.
        """
        with self._transaction() as connection:
            made, new = sessions.add_task(connection, task)
        if not new and (made.name, made.description) != (task.name, task.description):
            raise ConflictError(
                f"task {task.id}", "exists with another name or description", "Take another id."
            )
        return made

    def add_session(self, row: NewRow) -> StoredSession:
        """Store a session once, however often and by how many at once it is asked for.

        Raises:
            ConflictError: other bytes are stored under that id.
            UnknownTaskError: its task does not exist.
            InputError: Postgres cannot hold a value of it.
        """
        with self._connection() as connection, at_once(connection):
            stored = sessions.add_session(connection, row)
        assert stored is not None
        return stored

    def add_session_by(self, secret: str, row: NewRow) -> StoredSession | None:
        """Store a session for who has a token, which is looked up in the same request.

        Returns:
            The session; None when the token may not write, or not any more.

        Raises:
            ConflictError, UnknownTaskError, InputError: as of ``add_session``.
        """
        with self._connection() as connection, at_once(connection):
            return sessions.add_session(connection, row, secret)

    def add_sessions(self, arrivals: Sequence[Arrival]) -> list[Outcome]:
        """Store sessions that came at the same time, each as ``add_session_by`` does.

        They wait for the disk once, together; what only one of them is refused for is told of
        that one.

        Returns:
            What became of each, in their order. What is told as stored is on disk.

        Raises:
            StorageError: it is not known of any whether it is stored.
        """
        with self._connection() as connection, at_once(connection):
            stored = groups.store_together(connection, arrivals)
        return [
            stored[number] if number in stored else self._outcome(arrival)
            for number, arrival in enumerate(arrivals)
        ]

    def _outcome(self, arrival: Arrival) -> Outcome:
        try:
            return self.add_session_by(arrival.secret, arrival.row)
        except DebriefError as error:
            return error

    def session(self, id: UUID | str) -> StoredSession:
        """Return one session.

        Raises:
            NotFoundError: there is none.
            InputError: ``id`` is not a UUID.
        """
        with self._connection() as connection:
            return sessions.session(connection, _uuid(id))

    def record_text(self, id: UUID | str) -> bytes:
        """Return a session's stored record, byte for byte.

        Raises:
            NotFoundError: there is none.
            InputError: ``id`` is not a UUID.
        """
        with self._connection() as connection:
            return sessions.record_text(connection, _uuid(id))

    def sessions(
        self,
        filters: SessionFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int = 100,
        order: Literal["received", "changed"] = "received",
    ) -> Page[StoredSession]:
        """Return sessions after ``cursor``.

        Args:
            filters: which sessions.
            cursor: of an earlier page, or of an export; the beginning, if None.
            limit: how many at most.
            order: ``received``: each session once, in the order they came in. ``changed``: one
                whose status was set comes again, for those who keep up with the store.

        Raises:
            CursorError: the cursor is not one of this order and database.
            InputError: ``limit`` is not positive.
        """
        with self._connection() as connection:
            return sessions.page(connection, filters, cursor, _positive(limit), order)

    def count(self, filters: SessionFilter = EVERYTHING) -> int:
        """Return how many sessions there are."""
        with self._connection() as connection:
            return sessions.count(connection, filters)

    def holdings(self) -> Holdings:
        """Return how much there is."""
        with self._connection() as connection:
            return sessions.holdings(connection)

    def set_status(self, id: UUID | str, status: Status) -> StoredSession:
        """Mark a session as a draft, or as ready for training.

        Raises:
            NotFoundError: there is none.
            ConflictError: it cannot be ready; the reasons are told.
            InputError: ``id`` is not a UUID.
        """
        with self._transaction() as connection:
            return sessions.set_status(connection, _uuid(id), status)

    def export(
        self,
        filters: SessionFilter = EVERYTHING,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Export:
        """Return the records after ``cursor`` in the order they came in, and how many they are.

        Memory does not grow with their number. The export is read from one snapshot and holds a
        connection until it is exhausted or closed.

        Raises:
            CursorError: the cursor is not one of this database.
            InputError: ``limit`` is not positive.
        """
        if limit is not None:
            _positive(limit)
        return Export(self._engine, filters, cursor, limit)

    def add_token(self, name: str, scopes: Sequence[Scope]) -> tuple[Token, str]:
        """Make a token.

        Returns:
            The token, and its secret, which is kept nowhere.

        Raises:
            ConflictError: there is one of that name, revoked or not.
            InputError: the name or a scope is not one.
        """
        with self._transaction() as connection:
            return tokens.add(connection, name, scopes)

    def find_token(self, secret: str) -> Token | None:
        """Return the token that has this secret, unless it was revoked."""
        with self._transaction() as connection:
            return tokens.find(connection, secret)

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked ones too, by name."""
        with self._connection() as connection:
            return tokens.all_of(connection)

    def revoke_token(self, name: str) -> Token:
        """Revoke a token for good; one that is revoked stays so.

        Raises:
            NotFoundError: there is none of that name.
        """
        with self._transaction() as connection:
            return tokens.revoke(connection, name)

    def add_benchmark(self, new: NewBenchmark) -> Benchmark:
        """Keep a figure that was measured on a version of an adapter.

        Raises:
            UnknownTaskError: it names a task that does not exist.
            NotFoundError: it names a session that is not stored.
            InputError: its value is not a finite number, or Postgres cannot hold its details.
        """
        with self._transaction() as connection:
            return benchmarks.add(connection, new)

    def benchmarks(
        self,
        filters: BenchmarkFilter = benchmarks.EVERY,
        cursor: str | None = None,
        limit: int = 100,
    ) -> Page[Benchmark]:
        """Return benchmarks after ``cursor``, in the order they came in.

        Raises:
            CursorError: the cursor is not one of benchmarks of this database.
            InputError: ``limit`` is not positive.
        """
        with self._connection() as connection:
            return benchmarks.page(connection, filters, cursor, _positive(limit))


def _positive(limit: int) -> int:
    if limit < 1:
        raise InputError("limit", f"is {limit}", "It is 1 or more.")
    return limit


def _uuid(id: UUID | str) -> UUID:
    try:
        return id if isinstance(id, UUID) else UUID(id)
    except ValueError:
        raise InputError("the session's id", "is not a UUID") from None

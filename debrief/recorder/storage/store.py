"""The store of records and tokens: the one door to the recorder's database.

Of a token only the digest of its secret is stored.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal, TypeVar
from uuid import UUID

import sqlalchemy as sa
from msgspec import structs
from pydantic import BaseModel
from sqlalchemy.dialects.postgresql import insert

from debrief.errors import InputError
from debrief.recorder.contracts import Status
from debrief.recorder.storage import listing as tables
from debrief.recorder.storage.connecting import Database, explained
from debrief.recorder.storage.listing import Export, lock_numbering, settled_rows
from debrief.recorder.storage.rows import (
    SCOPES,
    Benchmark,
    ConflictError,
    NewBenchmark,
    NewRow,
    NewTask,
    NotFoundError,
    Page,
    Scope,
    SessionFilter,
    StoreCounts,
    StoredSession,
    Task,
    Token,
)

Model = TypeVar("Model", bound=BaseModel)
_ALL_SESSIONS = SessionFilter()
_TABLE = tables.sessions
_SESSION = tuple(_TABLE.c[name] for name in StoredSession.model_fields)
_INSERT = insert(_TABLE).on_conflict_do_nothing(index_elements=["id"]).returning(*_SESSION)
_TOKENS = tables.tokens
_TOKEN = tuple(_TOKENS.c[name] for name in Token.__struct_fields__)
_TOKEN_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_ORDERS = {"received": _TABLE.c.number, "changed": _TABLE.c.changed}


class RecordStore(Database):
    """Tasks, sessions, tokens and benchmarks in one Postgres database.

    Safe to share between threads; not between a process and its forks. Every method raises
    ``StorageError`` when the database is away or busy, and leaves nothing half done: a call that
    failed can be repeated.

    Args:
        url: ``postgresql://user:password@host:port/name``.

    Raises:
        ConfigurationError: ``url`` is not that.
    """

    def tasks(self) -> tuple[Task, ...]:
        """Return all tasks, by id."""
        with self._connection() as connection:
            rows = connection.execute(sa.select(tables.tasks).order_by(tables.tasks.c.id))
            return tuple(map(Task.model_validate, rows))

    def task(self, id: str) -> Task:
        """Return one task.

        Raises:
            NotFoundError: there is none.
        """
        query = sa.select(tables.tasks).where(tables.tasks.c.id == id)
        missing = NotFoundError(f"task {id}", "does not exist", "Make it: POST /tasks")
        return Task.model_validate(self._one(query, missing))

    def add_task(self, task: NewTask) -> Task:
        """Make a task; making the same one again changes nothing.

        Raises:
            ConflictError: another one has that id.
        """
        statement = insert(tables.tasks).values(task.model_dump()).on_conflict_do_nothing()
        with self._transaction() as connection:
            connection.execute(statement)
        stored = self.task(task.id)
        if (stored.name, stored.description) != (task.name, task.description):
            raise ConflictError(
                f"task {task.id}", "exists with another name or description", "Take another id."
            )
        return stored

    def add_session(self, row: NewRow) -> StoredSession:
        """Store a session once, however often and however concurrently it is sent.

        Raises:
            ConflictError: other bytes are stored under that id.
            UnknownTaskError: its task does not exist.
            InputError: Postgres cannot hold a value of it.
        """
        with self._transaction() as connection:
            values = structs.asdict(row)
            del values["text"]
            values |= {"record_text": row.text.decode(), "size": len(row.text)}
            lock_numbering(connection)
            new = connection.execute(_INSERT, values).one_or_none()
        stored = self.session(row.id) if new is None else StoredSession.model_validate(new)
        if stored.sha256 != row.sha256:
            raise ConflictError(
                f"session {row.id}", "is stored with other bytes", "A new recording takes a new id."
            )
        return stored

    def session(self, id: UUID) -> StoredSession:
        """Return one session.

        Raises:
            NotFoundError: there is none.
        """
        query = sa.select(*_SESSION).where(_TABLE.c.id == id)
        return StoredSession.model_validate(self._one(query, _not_stored(id)))

    def record_text(self, id: UUID) -> bytes:
        """Return a session's stored record, byte for byte.

        Raises:
            NotFoundError: there is none.
        """
        query = sa.select(_TABLE.c.record_text).where(_TABLE.c.id == id)
        return str(self._one(query, _not_stored(id)).record_text).encode()

    def sessions(
        self,
        filters: SessionFilter = _ALL_SESSIONS,
        cursor: str | None = None,
        limit: int = 100,
        order: Literal["received", "changed"] = "received",
    ) -> Page[StoredSession]:
        """Return sessions after ``cursor``.

        Args:
            filters: which sessions.
            cursor: of an earlier page, or of an export; None is the beginning.
            limit: how many at most.
            order: ``received``: each session once, in the order they were received. ``changed``:
                a session whose status was set is listed again, for readers that follow the store.

        Raises:
            CursorError: the cursor is not one of this order and database.
        """
        query = sa.select(*_SESSION).where(*_conditions(filters))
        return self._page(query, _ORDERS[order], order, cursor, limit, StoredSession)

    def count(self) -> int:
        """Return how many sessions there are."""
        return self.counts().sessions

    def counts(self) -> StoreCounts:
        """Return how much the store contains."""
        query = sa.select(
            sa.select(sa.func.count()).select_from(tables.tasks).scalar_subquery(),
            sa.select(sa.func.count()).select_from(_TABLE).scalar_subquery(),
            sa.select(sa.func.count()).where(_TABLE.c.status == "ready").scalar_subquery(),
            sa.func.pg_database_size(sa.func.current_database()),
        )
        with self._connection() as connection:
            return StoreCounts(*connection.execute(query).one())

    def set_status(self, id: UUID, status: Status) -> StoredSession:
        """Mark a session as a draft, or as ready for training.

        Raises:
            NotFoundError: there is none.
            ConflictError: it cannot be ready; says why.
        """
        statement = (
            sa.update(_TABLE)
            .where(_TABLE.c.id == id, _TABLE.c.status != status)
            .values(status=status, changed=sa.text("nextval('sessions_changed_seq')"))
        )
        if status == "ready":
            statement = statement.where(sa.func.cardinality(_TABLE.c.not_ready) == 0)
        with self._transaction() as connection:
            lock_numbering(connection)
            connection.execute(statement)
        session = self.session(id)
        if status == "ready" and session.not_ready:
            move = "Record the work again with what is missing."
            raise ConflictError(f"session {id}", session.not_ready, move)
        return session

    def export(
        self,
        filters: SessionFilter = _ALL_SESSIONS,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Export:
        """Return the records after ``cursor`` in the order they were received, with their count.

        Memory does not grow with their number. The export is read from one snapshot and uses a
        connection until it is exhausted or closed.

        Raises:
            CursorError: the cursor is not one of this database.
        """
        with explained(), ExitStack() as opened:
            connection = opened.enter_context(self._engine.connect())
            export = Export(connection, _conditions(filters), cursor, limit)
            opened.pop_all()
            return export

    def remove(self, ids: Iterable[UUID]) -> None:
        """Delete sessions for good, and rewrite the table, so that it holds nothing of them.

        Benchmarks stay and no longer name them. Readers wait meanwhile.
        """
        chosen = list(ids)
        with self._transaction() as connection:
            measured = sa.update(tables.benchmarks).where(
                tables.benchmarks.c.session_id.in_(chosen)
            )
            connection.execute(measured.values(session_id=None))
            connection.execute(sa.delete(_TABLE).where(_TABLE.c.id.in_(chosen)))
        self.rewrite("public")

    def add_benchmark(self, new: NewBenchmark) -> Benchmark:
        """Store a figure that was measured on a version of an adapter.

        Raises:
            UnknownTaskError: it names a task that does not exist.
            NotFoundError: it names a session that is not stored.
            InputError: Postgres cannot hold its details.
        """
        statement = insert(tables.benchmarks).values(new.model_dump())
        with self._transaction() as connection:
            lock_numbering(connection)
            row = connection.execute(statement.returning(*tables.benchmarks.c)).one()
        return Benchmark.model_validate(row)

    def benchmarks(
        self,
        cursor: str | None = None,
        limit: int = 100,
        **values: str | UUID | None,
    ) -> Page[Benchmark]:
        """Return benchmarks after ``cursor``, in the order they were received.

        Args:
            cursor: of an earlier page; None is the beginning.
            limit: how many at most.
            values: values by column; None does not restrict.

        Raises:
            CursorError: the cursor is not one of benchmarks of this database.
        """
        conditions = _equal(tables.benchmarks, values)
        query = sa.select(tables.benchmarks).where(*conditions)
        return self._page(query, tables.benchmarks.c.id, "benchmarks", cursor, limit, Benchmark)

    def add_token(self, name: str, scopes: Sequence[Scope]) -> tuple[Token, str]:
        """Make a token of 256 random bits.

        Returns:
            The token, and its secret, which is stored nowhere.

        Raises:
            ConflictError: there is one of that name, revoked or not.
            InputError: the name or a scope is not allowed.
        """
        if not _TOKEN_NAME.fullmatch(name):
            raise InputError(
                f"token {name!r}", "is not a name", "It is lower-case letters, digits and hyphens."
            )
        unknown = sorted(set(scopes) - set(SCOPES))
        if unknown or not scopes:
            reason = f"has no scope {', '.join(unknown)}" if unknown else "has no scope"
            raise InputError(f"token {name}", reason, f"There are: {', '.join(SCOPES)}.")
        secret = "debrief_" + secrets.token_urlsafe(32)
        ordered = [scope for scope in SCOPES if scope in scopes]
        values = {"name": name, "sha256": _digest(secret), "scopes": ordered}
        statement = insert(_TOKENS).values(values).on_conflict_do_nothing().returning(*_TOKEN)
        with self._transaction() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            move = "Take another name; names are not reused."
            raise ConflictError(f"token {name}", "exists", move)
        return Token(*row), secret

    def find_token(self, secret: str) -> Token | None:
        """Return the token of a secret unless it was revoked, and store when it was used."""
        a_minute_ago = sa.func.now() - sa.text("interval '1 minute'")
        is_outdated = _TOKENS.c.last_used_at.is_(None) | (_TOKENS.c.last_used_at < a_minute_ago)
        is_the_token = sa.and_(_TOKENS.c.sha256 == _digest(secret), _TOKENS.c.revoked_at.is_(None))
        used = sa.update(_TOKENS).where(is_the_token).values(last_used_at=sa.func.now())
        with self._transaction() as connection:
            row = connection.execute(sa.select(*_TOKEN, is_outdated).where(is_the_token)).first()
            if row is not None and row[-1]:
                connection.execute(used)
        return Token(*row[:-1]) if row is not None else None

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked ones too, by name."""
        with self._connection() as connection:
            rows = connection.execute(sa.select(*_TOKEN).order_by(_TOKENS.c.name))
            return tuple(Token(*row) for row in rows)

    def revoke_token(self, name: str) -> Token:
        """Revoke a token for good; revoking it again changes nothing.

        Raises:
            NotFoundError: there is none of that name.
        """
        first = sa.func.coalesce(_TOKENS.c.revoked_at, sa.func.now())
        statement = sa.update(_TOKENS).where(_TOKENS.c.name == name).values(revoked_at=first)
        with self._transaction() as connection:
            row = connection.execute(statement.returning(*_TOKEN)).one_or_none()
        if row is None:
            raise NotFoundError(f"token {name}", "does not exist", "See: debrief tokens list")
        return Token(*row)

    def _one(self, query: sa.Select[Any], missing: NotFoundError) -> sa.Row[Any]:
        with self._connection() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            raise missing
        return row

    def _page(
        self,
        query: sa.Select[Any],
        column: sa.ColumnElement[int],
        order: str,
        cursor: str | None,
        limit: int,
        model: type[Model],
    ) -> Page[Model]:
        with self._connection() as connection:
            settled = settled_rows(connection, column, order, cursor)
            query = query.add_columns(column.label("position")).order_by(column).limit(limit + 1)
            query = query.where(column > settled.after, column <= settled.last)
            rows = connection.execute(query).all()
        more = len(rows) > limit
        last = rows[limit - 1].position if more else max(settled.last, settled.after)
        items = tuple(map(model.model_validate, rows[:limit]))
        return Page(items=items, cursor=settled.cursor(last), more=more)


def _conditions(filters: SessionFilter) -> list[sa.ColumnElement[bool]]:
    values = {name: getattr(filters, name) for name in ("task_id", "status", "repo_name")}
    conditions = _equal(_TABLE, values)
    if filters.since is not None:
        conditions.append(_TABLE.c.created_at >= filters.since)
    if filters.until is not None:
        conditions.append(_TABLE.c.created_at < filters.until)
    return conditions


def _equal(table: sa.TableClause, values: Mapping[str, object]) -> list[sa.ColumnElement[bool]]:
    return [table.c[name] == value for name, value in values.items() if value is not None]


def _not_stored(id: UUID) -> NotFoundError:
    return NotFoundError(f"session {id}", "is not stored here")


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()

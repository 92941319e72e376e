"""Tasks and sessions: the statements."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from debrief.errors import InputError
from debrief.recorder.contracts import NewTask, Status, StoredSession, Task
from debrief.recorder.errors import ConflictError, NotFoundError, UnknownTaskError
from debrief.recorder.storage import cursors, tokens
from debrief.recorder.storage.connecting import meaning
from debrief.recorder.storage.rows import Holdings, NewRow, Page, SessionFilter
from debrief.recorder.storage.tables import sessions as table
from debrief.recorder.storage.tables import tasks as task_table

_COLUMNS = tuple(table.c[name] for name in StoredSession.model_fields)
_TASK_KEY = "sessions_task_id_fkey"
_INSERT = f"""
SELECT pg_advisory_xact_lock_shared({cursors.NUMBERING_LOCK});
INSERT INTO sessions (
    id, task_id, repo_name, repo_remote, branch, base_ref, created_at, record_text, size, sha256,
    status, verified, files, validated, redactions, not_ready
) SELECT
    %(id)s, %(task_id)s, %(repo_name)s, %(repo_remote)s, %(branch)s, %(base_ref)s,
    %(created_at)s, %(record_text)s, %(size)s, %(sha256)s, %(status)s, %(verified)s, %(files)s,
    %(validated)s, %(redactions)s, %(not_ready)s
{{condition}} ON CONFLICT (id) DO NOTHING
RETURNING {", ".join(StoredSession.model_fields)}
"""
"""Both statements are one request, which is one transaction where none was begun."""
_BY_ANYBODY = _INSERT.format(condition="")
_BY_TOKEN = _INSERT.format(
    condition="FROM tokens AS t WHERE t.sha256 = %(token)s AND t.revoked_at IS NULL"
    " AND 'write' = ANY (t.scopes)"
)
_ORDERS = {"received": table.c.number, "changed": table.c.changed}


def tasks(connection: sa.Connection) -> tuple[Task, ...]:
    """Return all tasks, by id."""
    rows = connection.execute(sa.select(task_table).order_by(task_table.c.id)).mappings()
    return tuple(Task(**row) for row in rows)


def task(connection: sa.Connection, id: str) -> Task:
    """Return one task.

    Raises:
        NotFoundError: there is none.
    """
    query = sa.select(task_table).where(task_table.c.id == id)
    found = connection.execute(query).mappings().one_or_none()
    if found is None:
        raise NotFoundError(f"task {id}", "does not exist", "Make it: POST /tasks")
    return Task(**found)


def add_task(connection: sa.Connection, task: NewTask) -> tuple[Task, bool]:
    """Make a task where there is none of that id.

    Returns:
        The task of that id, and whether it is new.
    """
    statement = insert(task_table).values(**task.model_dump()).on_conflict_do_nothing()
    row = connection.execute(statement.returning(*task_table.c)).mappings().one_or_none()
    if row is not None:
        return Task(**row), True
    there = connection.execute(sa.select(task_table).where(task_table.c.id == task.id))
    return Task(**there.mappings().one()), False


def add_session(
    connection: sa.Connection, row: NewRow, secret: str | None = None
) -> StoredSession | None:
    """Store a session; where the same bytes are stored under its id, return that.

    Args:
        connection: that commits each request of its own accord; the session takes one.
        row: the session.
        secret: of the token that it comes by, which is looked up in the same request.

    Returns:
        The session; None when the token may not write, or not any more.

    Raises:
        ConflictError: other bytes are stored under that id.
        UnknownTaskError: its task does not exist.
        DebriefError: what a failure of the database means.
    """
    given = {
        "id": str(row.id),
        "task_id": row.task_id,
        "repo_name": row.repo_name,
        "repo_remote": row.repo_remote,
        "branch": row.branch,
        "base_ref": row.base_ref,
        "created_at": in_utc(row.created_at),
        "record_text": row.text.decode(),
        "size": len(row.text),
        "sha256": row.sha256,
        "status": row.status,
        "verified": row.verified,
        "files": row.files,
        "validated": row.validated,
        "redactions": row.redactions,
        "not_ready": list(row.not_ready),
        "token": None if secret is None else tokens.digest_of(secret),
    }
    made = _insert(connection, _BY_ANYBODY if secret is None else _BY_TOKEN, given)
    if made is not None:
        return made
    if secret is not None:
        token = tokens.find(connection, secret)
        if token is None or "write" not in token.scopes:
            return None
    there = session(connection, row.id)
    if there.sha256 != row.sha256:
        raise ConflictError(
            f"session {row.id}", "is stored with other bytes", "A new recording takes a new id."
        )
    return there


def _insert(
    connection: sa.Connection, statement: str, given: Mapping[str, object]
) -> StoredSession | None:
    """Insert a row past SQLAlchemy, whose share would be as long as the driver's."""
    import psycopg2

    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor:
            cursor.execute(statement, given)
            made = cursor.fetchone()
    except psycopg2.Error as error:
        if driver.closed:
            connection.invalidate()
        if getattr(error.diag, "constraint_name", "") == _TASK_KEY:
            raise UnknownTaskError(
                f"task {given['task_id']}", "does not exist", "Make it first, or name another."
            ) from None
        raise meaning(error) from None
    return (
        None if made is None else _stored(dict(zip(StoredSession.model_fields, made, strict=True)))
    )


def session(connection: sa.Connection, id: UUID) -> StoredSession:
    """Return one session.

    Raises:
        NotFoundError: there is none.
    """
    row = connection.execute(sa.select(*_COLUMNS).where(table.c.id == id)).mappings().one_or_none()
    if row is None:
        raise _missing(id)
    return _stored(row)


def record_text(connection: sa.Connection, id: UUID) -> bytes:
    """Return a session's record.

    Raises:
        NotFoundError: there is none.
    """
    query = sa.select(table.c.record_text).where(table.c.id == id)
    text = connection.execute(query).scalar_one_or_none()
    if text is None:
        raise _missing(id)
    return str(text).encode()


def page(
    connection: sa.Connection, filters: SessionFilter, cursor: str | None, limit: int, order: str
) -> Page[StoredSession]:
    """Return the sessions after ``cursor``, at most ``limit``.

    Raises:
        CursorError: the cursor is not one of this order and database.
    """
    column = _ORDERS[order]
    span = cursors.settled(connection, column, order, cursor)
    query = (
        sa.select(column.label("position"), *_COLUMNS)
        .where(*conditions(filters), column > span.after, column <= span.last)
        .order_by(column)
        .limit(limit + 1)
    )
    rows = connection.execute(query).mappings().all()
    more = len(rows) > limit
    items = tuple(_stored(row) for row in rows[:limit])
    position = rows[limit - 1]["position"] if more else max(span.last, span.after)
    return Page(items=items, cursor=span.cursor(position), more=more)


def count(connection: sa.Connection, filters: SessionFilter) -> int:
    """Return how many sessions there are."""
    query = sa.select(sa.func.count()).select_from(table).where(*conditions(filters))
    return int(connection.execute(query).scalar_one())


def holdings(connection: sa.Connection) -> Holdings:
    """Return how much there is."""
    numbers = sa.select(
        sa.select(sa.func.count()).select_from(task_table).scalar_subquery(),
        sa.select(sa.func.count()).select_from(table).scalar_subquery(),
        sa.select(sa.func.count()).where(table.c.status == "ready").scalar_subquery(),
        sa.func.pg_database_size(sa.func.current_database()),
    )
    return Holdings(*connection.execute(numbers).one())


def set_status(connection: sa.Connection, id: UUID, status: Status) -> StoredSession:
    """Set a session's status.

    Raises:
        NotFoundError: there is none.
        ConflictError: it cannot be ready.
    """
    cursors.numbering(connection)
    statement = (
        sa.update(table)
        .where(table.c.id == id, table.c.status != status)
        .values(status=status, changed=sa.text("nextval('sessions_changed_seq')"))
        .returning(*_COLUMNS)
    )
    if status == "ready":
        statement = statement.where(sa.func.cardinality(table.c.not_ready) == 0)
    row = connection.execute(statement).mappings().one_or_none()
    if row is not None:
        return _stored(row)
    there = session(connection, id)
    if there.status != status:
        reasons = "; ".join(there.not_ready)
        raise ConflictError(f"session {id}", f"cannot be ready: {reasons}", "It stays a draft.")
    return there


def conditions(filters: SessionFilter) -> list[sa.ColumnElement[bool]]:
    """Return what holds for the sessions that are meant."""
    found: list[sa.ColumnElement[bool]] = []
    for name in ("task_id", "status", "repo_name"):
        value = getattr(filters, name)
        if value is not None:
            found.append(table.c[name] == value)
    if filters.since is not None:
        found.append(table.c.created_at >= in_utc(filters.since))
    if filters.until is not None:
        found.append(table.c.created_at < in_utc(filters.until))
    return found


def in_utc(time: datetime) -> datetime:
    """Return a moment in UTC, which is how it comes back.

    Raises:
        InputError: it has no time zone, or is outside the years 1 to 9999 there.
    """
    if time.tzinfo is None:
        raise InputError(str(time), "has no time zone")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise InputError(str(time), "is outside the years 1 to 9999 in UTC") from None


def _missing(id: UUID) -> NotFoundError:
    return NotFoundError(f"session {id}", "is not stored here")


def _stored(row: Any) -> StoredSession:
    return StoredSession(**{name: row[name] for name in StoredSession.model_fields})

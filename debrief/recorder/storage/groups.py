"""Several sessions in one transaction: what came at the same time waits for the disk once.

A group is all or nothing in the database, and each of its sessions still gets the answer that it
would have got alone. What is there already, or of a task that is not, is left out beforehand; where
something turns up on the way that would refuse one of the others, nothing of the group is kept, and
each is stored by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

from debrief.errors import DebriefError, InputError
from debrief.recorder.contracts import StoredSession
from debrief.recorder.storage import cursors, tokens
from debrief.recorder.storage.connecting import meaning
from debrief.recorder.storage.copying import COLUMNS, rows_in_binary
from debrief.recorder.storage.rows import NewRow
from debrief.recorder.storage.sessions import in_utc

if TYPE_CHECKING:
    from sqlalchemy import Connection

_BEGIN = f"""
BEGIN;
SELECT pg_advisory_xact_lock_shared({cursors.NUMBERING_LOCK});
SELECT now(),
    ARRAY(SELECT id::text FROM sessions WHERE id = ANY (%(ids)s::uuid[])),
    ARRAY(SELECT id FROM tasks WHERE id = ANY (%(tasks)s))
"""
_COPY = f"COPY sessions ({', '.join(COLUMNS)}) FROM STDIN (FORMAT binary)"
_COMMIT = """
SELECT 1 / (count(*) = %(tokens)s)::int FROM tokens
    WHERE sha256 = ANY (%(digests)s) AND revoked_at IS NULL AND 'write' = ANY (scopes);
COMMIT
"""
"""One request: where a token is not good any more, the division fails, and nothing is committed."""
_TOO_MUCH = "54000"
"""A limit of Postgres, which one value is over."""


class Arrival(NamedTuple):
    """A session to store, and the secret of the token that it comes by."""

    row: NewRow
    secret: str


Outcome = StoredSession | DebriefError | None
"""What became of an arrival: it is stored; it is refused; its token may not write any more."""


def store_together(connection: Connection, arrivals: Sequence[Arrival]) -> dict[int, StoredSession]:
    """Store what can be stored in one transaction, or nothing.

    Args:
        connection: that commits each request of its own accord.
        arrivals: the sessions, each with its token.

    Returns:
        What was stored and is committed, by its place among the arrivals. Of the others nothing
        is stored by this, and each has to be asked for by itself.

    Raises:
        DebriefError: the database is away or busy, and it is not known whether any is stored.
            All can be asked for again.
    """
    import struct

    import psycopg2

    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor:
            return _transaction(cursor, arrivals)
    except psycopg2.Error as error:
        if driver.closed:
            connection.invalidate()
        elif (
            isinstance(error, psycopg2.IntegrityError | psycopg2.DataError)
            or error.pgcode == _TOO_MUCH
        ):
            return {}
        raise meaning(error) from None
    except (ValueError, OverflowError, InputError, struct.error):
        return {}
    finally:
        _end(connection, driver)


def _end(connection: Connection, driver: Any) -> None:
    """Leave no transaction behind on a connection that others will take."""
    import psycopg2

    if not driver.closed and driver.get_transaction_status():
        try:
            with driver.cursor() as cursor:
                cursor.execute("ROLLBACK")
        except psycopg2.Error:
            connection.invalidate()


def _transaction(cursor: Any, arrivals: Sequence[Arrival]) -> dict[int, StoredSession]:
    # In the order of ids: two groups that share some wait for each other one way only.
    firsts = {arrival.row.id: number for number, arrival in reversed([*enumerate(arrivals)])}
    rows = {firsts[id]: arrivals[firsts[id]].row for id in sorted(firsts)}
    given = {"ids": [str(id) for id in firsts], "tasks": [row.task_id for row in rows.values()]}
    cursor.execute(_BEGIN, given)
    now, known, tasks = cursor.fetchone()
    fit = {
        number: row
        for number, row in rows.items()
        if str(row.id) not in known and row.task_id in tasks
    }
    if not fit:
        return {}
    cursor.copy_expert(_COPY, BytesIO(data := rows_in_binary(fit.values())), len(data))
    digests = {tokens.digest_of(arrivals[number].secret) for number in fit}
    cursor.execute(_COMMIT, {"tokens": len(digests), "digests": list(digests)})
    return {number: _stored(row, now) for number, row in fit.items()}


def _stored(row: NewRow, received_at: Any) -> StoredSession:
    return StoredSession(
        id=row.id,
        task_id=row.task_id,
        repo_name=row.repo_name,
        repo_remote=row.repo_remote,
        branch=row.branch,
        base_ref=row.base_ref,
        created_at=in_utc(row.created_at),
        received_at=received_at,
        status=row.status,
        sha256=row.sha256,
        size=len(row.text),
        verified=row.verified,
        files=row.files,
        validated=row.validated,
        redactions=row.redactions,
        not_ready=list(row.not_ready),
    )

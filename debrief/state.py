"""State shared by processes: cached answers, money spent, the log of changes; SQLite or Postgres.

Every method is one statement and one transaction, or a few that may be cut short, so a process
that dies at any moment loses nothing.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from debrief.errors import ConfigurationError
from debrief.files import make_private
from debrief.retry import RetryPolicy, first_line, retrying
from debrief.settings import Settings

VARIABLE = "DEBRIEF_STATE_URL"
SCHEMA = "debrief_state"
"""Of the tables in a Postgres database."""
DAY = 86_400.0
_PAGE = 200
"""Answers that are copied at a time."""
_LOCK = 0x64656272
"""Number of the lock that whoever makes the tables holds: making them twice at once fails."""
_WAIT = 30.0
"""Seconds that a SQLite file may be locked by others."""
_KEEPALIVE = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "application_name": "debrief",
}


class Size(Struct, frozen=True):
    """How many answers there are."""

    answers: int
    bytes: int


class AuditEntry(Struct, frozen=True):
    """What a person changed in a browser."""

    person: str
    role: str
    change: str
    """Names what was changed; the words that somebody typed are not in it."""
    at: float = msgspec.field(default_factory=time.time)
    """Seconds since 1970."""


_METADATA = sa.MetaData()
_ANSWERS = sa.Table(
    "answers",
    _METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("value", sa.LargeBinary, nullable=False),
    sa.Column("kept", sa.Double, nullable=False),
)
_SUBJECTS = sa.Table(
    "subjects",
    _METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("session", sa.Text, primary_key=True),
)
"""Of an answer, the sessions that it is about."""
_SPENDING = sa.Table(
    "spending",
    _METADATA,
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("calls", sa.BigInteger, nullable=False),
    sa.Column("usd", sa.Double, nullable=False),
    sa.Column("since", sa.Double, nullable=False),
)
_CHORES = sa.Table(
    "chores",
    _METADATA,
    sa.Column("chore", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
)
_CHANGES = sa.Table(
    "changes",
    _METADATA,
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("person", sa.Text, nullable=False),
    sa.Column("role", sa.Text, nullable=False),
    sa.Column("change", sa.Text, nullable=False),
)
FORGOTTEN = "a person who was forgotten"
_VALUE = sa.cast(_ANSWERS.c.value, sa.LargeBinary).label("value")
"""An earlier version stored texts in SQLite."""


class State:
    """Answers by key and what runs have spent; safe in threads and processes.

    Args:
        location: a SQLite file, or the address of a Postgres database, in which the user may make
            a schema or finds it made; None keeps everything in memory.
        retry: how a database that is away is retried.

    Raises:
        ConfigurationError: the database cannot be reached, made or used.
    """

    def __init__(self, location: Path | str | None, retry: RetryPolicy | None = None) -> None:
        policy = retry or RetryPolicy(seconds=60, first_wait=0.1, longest_wait=2)
        self._retry = retrying(policy, _is_temporary, name="the shared state")
        self._file = location if isinstance(location, Path) else None
        if isinstance(location, str):
            url = _postgres_url(location)
            self.location = url.render_as_string(hide_password=True)
            """Where it is, without a password."""
            self._engine: sa.Engine = sa.create_engine(
                url,
                isolation_level="AUTOCOMMIT",
                pool_pre_ping=True,
                pool_size=2,
                max_overflow=6,
                pool_timeout=60,
                connect_args=_KEEPALIVE,
            ).execution_options(schema_translate_map={None: SCHEMA})
        else:
            self.location = str(location or "memory")
            self._engine = _sqlite_engine(location)
        # A child of a fork does not use its parent's connections.
        os.register_at_fork(after_in_child=lambda: self._engine.dispose(close=False))
        with self._explained():
            self._retry(self._make_tables)

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    def get(self, key: str) -> bytes | None:
        """Return the answer to a question; None if there is none."""
        value = self._execute(sa.select(_VALUE).where(_ANSWERS.c.key == key)).scalar()
        return None if value is None else bytes(value)

    def put(self, key: str, value: bytes, about: Iterable[str] = ()) -> None:
        """Store an answer.

        Args:
            key: of the question.
            value: the answer.
            about: the ids of the sessions that it is about.
        """
        if subjects := [{"key": key, "session": session} for session in about]:
            self._execute(self._insert(_SUBJECTS).values(subjects).on_conflict_do_nothing())
        insert = self._insert(_ANSWERS).values(key=key, value=value, kept=time.time())
        new = {"value": insert.excluded.value, "kept": insert.excluded.kept}
        self._execute(insert.on_conflict_do_update(index_elements=["key"], set_=new))

    def copy_from(self, other: State) -> int:
        """Store the answers of another state too, with their age; return how many were new.

        Existing answers stay, so a copy that was cut short goes on with the rest.
        """
        columns, new, last = _ANSWERS.c, 0, ""
        page = sa.select(columns.key, _VALUE, columns.kept).order_by(columns.key).limit(_PAGE)
        while rows := other._execute(page.where(columns.key > last)).mappings().fetchall():
            subjects = sa.select(_SUBJECTS).where(
                _SUBJECTS.c.key > last, _SUBJECTS.c.key <= rows[-1]["key"]
            )
            if about := other._execute(subjects).mappings().fetchall():
                insert = self._insert(_SUBJECTS).values([dict(row) for row in about])
                self._execute(insert.on_conflict_do_nothing())
            insert = self._insert(_ANSWERS).values([dict(row) for row in rows])
            new += self._execute(insert.on_conflict_do_nothing()).rowcount
            last = rows[-1]["key"]
        return new

    def about(self, sessions: Collection[str]) -> set[str]:
        """Return the keys of the answers that are about some sessions."""
        chosen, found = sorted(sessions), set[str]()
        for start in range(0, len(chosen), _PAGE):
            part = _SUBJECTS.c.session.in_(chosen[start : start + _PAGE])
            found |= {row[0] for row in self._execute(sa.select(_SUBJECTS.c.key).where(part))}
        return found

    def unattributed(self) -> Iterator[tuple[str, bytes]]:
        """Yield the answers of which nobody noted what they are about, with their keys.

        Earlier versions kept such ones, and what asks about no session does.
        """
        last, columns = "", _ANSWERS.c
        noted = sa.select(_SUBJECTS.c.key).where(_SUBJECTS.c.key == columns.key).exists()
        page = sa.select(columns.key, _VALUE).where(~noted).order_by(columns.key).limit(_PAGE)
        while rows := self._execute(page.where(columns.key > last)).fetchall():
            yield from ((row[0], bytes(row[1])) for row in rows)
            last = rows[-1][0]

    def remove(self, keys: Collection[str]) -> None:
        """Delete answers for good; what they took on the disk is overwritten or given back."""
        chosen = sorted(keys)
        for start in range(0, len(chosen), _PAGE):
            for table in (_ANSWERS, _SUBJECTS):
                part = table.c.key.in_(chosen[start : start + _PAGE])
                self._execute(sa.delete(table).where(part))
        if self._engine.dialect.name == "postgresql":
            for table in (_ANSWERS, _SUBJECTS, _CHANGES):
                self._execute(sa.text(f"VACUUM (FULL) {SCHEMA}.{table.name}"))
        else:
            self.compact()

    def reserve(
        self, run: str, usd: float, *, max_calls: int | None, max_usd: float | None
    ) -> bool:
        """Set a call and its likely cost aside for a run if both limits allow, in one step."""
        spent = _SPENDING.c
        account = self._insert(_SPENDING).values(run=run, calls=0, usd=0, since=time.time())
        self._execute(account.on_conflict_do_nothing())
        update = sa.update(_SPENDING).where(spent.run == run)
        if max_calls is not None:
            update = update.where(spent.calls < max_calls)
        if max_usd is not None:
            update = update.where(spent.usd + usd <= max_usd)
        update = update.values(calls=spent.calls + 1, usd=spent.usd + usd)
        return bool(self._execute(update).rowcount == 1)

    def settle(self, run: str, usd: float, *, calls: int = 0) -> None:
        """Add the difference between what a call came to and what was set aside for it."""
        spent = _SPENDING.c
        update = sa.update(_SPENDING).where(spent.run == run)
        self._execute(update.values(usd=spent.usd + usd, calls=spent.calls + calls))

    def spent(self, run: str) -> tuple[int, float]:
        """Return the calls and the USD of a run."""
        columns = _SPENDING.c
        query = sa.select(columns.calls, columns.usd).where(columns.run == run)
        row = self._execute(query).first()
        return (int(row[0]), float(row[1])) if row else (0, 0.0)

    def is_due(self, chore: str, interval: float) -> bool:
        """Return True to one caller in so many seconds: the chore is its to do."""
        now = time.time()
        insert = self._insert(_CHORES).values(chore=chore, at=now)
        update = insert.on_conflict_do_update(
            index_elements=["chore"],
            set_={"at": insert.excluded.at},
            where=_CHORES.c.at < now - interval,
        )
        return bool(self._execute(update).rowcount == 1)

    def record(self, change: AuditEntry) -> None:
        """Write down who changed what."""
        self._execute(sa.insert(_CHANGES).values(msgspec.structs.asdict(change)))

    def changes(self, *, since: float = 0.0) -> list[AuditEntry]:
        """Return what was changed after a time (seconds since 1970), the oldest first."""
        columns = (_CHANGES.c.person, _CHANGES.c.role, _CHANGES.c.change, _CHANGES.c.at)
        query = sa.select(*columns).where(_CHANGES.c.at > since).order_by(_CHANGES.c.at)
        return [AuditEntry(*row) for row in self._execute(query)]

    def changes_of(self, person: str) -> int:
        """Return how many changes a person made."""
        count = sa.select(sa.func.count()).where(_CHANGES.c.person == person)
        return int(self._execute(count).scalar())

    def forget_person(self, person: str) -> None:
        """Take a person's name out of the changes; what was changed, and when, stays."""
        update = sa.update(_CHANGES).where(_CHANGES.c.person == person)
        self._execute(update.values(person=FORGOTTEN))
        self.remove(())

    def prune(self, *, days: float, size: int) -> Size:
        """Delete the oldest answers, and what runs spent that are long over.

        Args:
            days: answers older than this go.
            size: of the answers that may stay, in bytes; the newest stay.

        Returns:
            What was deleted.
        """
        answers, before, start = _ANSWERS.c, self.size(), time.time() - days * DAY
        self._execute(sa.delete(_ANSWERS).where(answers.kept < start))
        if self.size().bytes > size:
            total = sa.func.sum(sa.func.length(answers.value))
            summed = sa.select(
                answers.key, total.over(order_by=(answers.kept.desc(), answers.key)).label("total")
            ).subquery()
            surplus = sa.select(summed.c.key).where(summed.c.total > size)
            self._execute(sa.delete(_ANSWERS).where(answers.key.in_(surplus)))
        kept = sa.select(answers.key).where(answers.key == _SUBJECTS.c.key).exists()
        self._execute(sa.delete(_SUBJECTS).where(~kept))
        self._execute(sa.delete(_SPENDING).where(_SPENDING.c.since < start))
        after = self.size()
        return Size(max(0, before.answers - after.answers), max(0, before.bytes - after.bytes))

    def size(self) -> Size:
        """Return how many answers there are."""
        size = sa.func.coalesce(sa.func.sum(sa.func.length(_ANSWERS.c.value)), 0)
        row = self._execute(sa.select(sa.func.count(), size).select_from(_ANSWERS)).one()
        return Size(int(row[0]), int(row[1]))

    def compact(self) -> None:
        """Give the room of deleted answers back to the disk; Postgres uses it again by itself."""
        if self._file is not None:
            self._execute(sa.text("VACUUM"))
            self._execute(sa.text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def _insert(self, table: sa.Table) -> Any:
        is_postgres = self._engine.dialect.name == "postgresql"
        return postgresql.insert(table) if is_postgres else sqlite.insert(table)

    def _execute(self, statement: Any) -> Any:
        """Execute a statement, again while the database is away; return its buffered result.

        A statement whose answer was lost with the connection is sent twice: all but those on
        what was spent come to the same then, and those err by one call.
        """

        def once() -> Any:
            with self._engine.connect() as connection:
                result = connection.execute(statement)
                return result.freeze()() if result.returns_rows else result

        with self._explained():
            return self._retry(once)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            reason = first_line(getattr(error, "orig", None) or error)
            if self._file is None:
                raise ConfigurationError(
                    self.location,
                    f"the shared state cannot be used: {reason}",
                    "See that the server runs and lets this user make a schema; the next run goes "
                    f"on. {VARIABLE} names another one, or is `here`: a file of this machine.",
                ) from None
            move = "Remove the file (answers are then asked for again), or set DEBRIEF_CACHE=off."
            if "full" in reason or "I/O" in reason:
                move = "Make room on the disk; the next run goes on from here."
            raise ConfigurationError(
                self.location, f"the cache of answers cannot be used: {reason}", move
            ) from None

    def _make_tables(self) -> None:
        with self._engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                known = sa.inspect(connection).get_table_names(schema=SCHEMA)
                if not _METADATA.tables.keys() <= set(known):
                    connection.execute(sa.select(sa.func.pg_advisory_lock(_LOCK)))
                    connection.execute(sa.schema.CreateSchema(SCHEMA, if_not_exists=True))
                    _METADATA.create_all(connection)
                    connection.execute(sa.select(sa.func.pg_advisory_unlock(_LOCK)))
                return
            for table in _METADATA.sorted_tables:
                connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
            for name, column in (("answers", "kept"), ("spending", "since")):
                # An earlier version had no such column; its rows count from now on.
                if all(each["name"] != column for each in sa.inspect(connection).get_columns(name)):
                    added = f"ALTER TABLE {name} ADD COLUMN {column} REAL NOT NULL"
                    connection.execute(sa.text(f"{added} DEFAULT {time.time()}"))


def _postgres_url(text: str) -> sa.URL:
    with suppress(sa.exc.ArgumentError):
        url = sa.make_url(text)
        if url.get_backend_name() in ("postgres", "postgresql"):
            return url.set(drivername="postgresql")
    raise ConfigurationError(
        VARIABLE,
        "is no address of a Postgres database",
        "Write it as postgresql://user:password@host/database, or say here.",
    )


def _sqlite_engine(file: Path | None) -> sa.Engine:
    if file is None:
        return sa.create_engine(
            "sqlite://",
            isolation_level="AUTOCOMMIT",
            poolclass=sa.QueuePool,  # one thread at a time: SQLite counts rows by connection
            pool_size=1,
            max_overflow=0,
            connect_args={"check_same_thread": False},
        )
    make_private(file.parent)
    file.touch(mode=0o600)
    with file.open("rb") as content:
        if content.read(16) not in (b"", b"SQLite format 3\x00"):
            # Put aside rather than stop every run for it.
            file.replace(file.with_suffix(".broken"))
            file.touch(mode=0o600)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(file)),
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": _WAIT},
    )

    @sa.event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: object) -> None:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")

    return engine


def _is_temporary(error: BaseException) -> bool:
    if not isinstance(error, InterfaceError | OperationalError):
        return False
    return "psycopg2" in type(error.orig).__module__ or "locked" in str(error.orig)


HERE = "here"
"""Given instead of an address: the file of this machine."""
_OPENED: dict[str, tuple[tuple[int, int], State]] = {}
_OPENING = threading.Lock()


def state_file(settings: Settings) -> Path:
    """Return the file of this machine's own state."""
    return settings.home.absolute() / "cache" / "answers.sqlite"


def state_url(settings: Settings) -> str:
    """Return the address of the shared state; empty for the file of this machine.

    Where the runs of a team are kept on a database of its own, they may be carried out on several
    machines, which would each pay for the same question. So the state is there too, unless
    ``DEBRIEF_STATE_URL`` names another one. A database that only one machine's Dagster uses, the
    embedded one, is left alone.
    """
    if settings.state_url:
        return "" if settings.state_url == HERE else settings.state_url
    is_team = settings.database_url or settings.broker
    return settings.dagster_database_url if is_team else ""


def open_state(settings: Settings) -> State:
    """Return the state that ``state_url`` names, else the file in ``DEBRIEF_HOME``; one a process.

    Raises:
        ConfigurationError: it cannot be opened.
    """
    url, path = state_url(settings), state_file(settings)
    key = url or str(path)
    with _OPENING:
        opened = _OPENED.get(key)
        if opened is not None and opened[0] == _identity(None if url else path):
            return opened[1]
        state = State(url or path)
        _OPENED[key] = _identity(None if url else path), state
        return state


def existing_state(settings: Settings) -> State | None:
    """Return where answers and changes are kept; None where none were ever."""
    return open_state(settings) if state_url(settings) or state_file(settings).exists() else None


def prune_answers(state: State, settings: Settings) -> Size:
    """Delete old and surplus answers; return what was deleted."""
    return state.prune(days=settings.cache_days, size=int(settings.cache_mb * 1e6))


def prune_daily(state: State, settings: Settings) -> None:
    """Delete old and surplus answers, if nobody did today."""
    if state.is_due("prune", DAY):
        prune_answers(state, settings)


def _identity(path: Path | None) -> tuple[int, int]:
    """Return what distinguishes a file from another one that took its name."""
    if path is None or not path.exists():
        return -1, -1
    status = path.stat()
    return status.st_dev, status.st_ino

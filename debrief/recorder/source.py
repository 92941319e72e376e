"""The recorder's database as a source of sessions: what is new in it is asked for, once.

The store tells what was added and what changed since a cursor, and the lake remembers cursor and
listing. A record is read from the store when its week is; while the database is away, what was
read before stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Protocol
from uuid import UUID

import msgspec
from msgspec import Struct

from debrief.errors import DebriefError, InputError
from debrief.lake import Lake
from debrief.recorder.contracts import Status, StoredSession
from debrief.recorder.errors import CursorError, NotFoundError
from debrief.recorder.storage.rows import Page
from debrief.redaction.redactor import Redactor
from debrief.sessions.model import Session
from debrief.sessions.readers.base import NoSession, ServerReader, Transcript
from debrief.sessions.readers.recorder.conversion import SOURCE, session_of, stored_path
from debrief.sessions.readers.recorder.records import NOT_A_RECORD, decode_meta
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SESSIONS_TABLE
from debrief.settings import Settings
from debrief.weeks import week_of

LISTING_TABLE = "recorder_listing"
A_PAGE = 500
_CONVERSION = "1"
"""Raised when records are made into sessions in another way: all are read again."""


class Store(Protocol):
    """What of a record store a source needs."""

    def changed(self, cursor: str | None, limit: int) -> Page[StoredSession]:
        """Return sessions that are new or whose status was set, after ``cursor``."""
        ...

    def record_text(self, id: UUID | str) -> bytes:
        """Return a stored record."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


class ListedRecord(Struct, frozen=True, kw_only=True, gc=False):
    """A record as the last listing saw it."""

    id: str
    sha256: str
    """Of the bytes that were sent: a session's record never changes."""
    status: Status
    started: datetime

    @property
    def version(self) -> str:
        """Return what changes when the session has to be read again."""
        return f"{_CONVERSION} {self.sha256} {self.status}"


class Changes(Struct, frozen=True, kw_only=True):
    """What became of a database since somebody looked."""

    records: tuple[ListedRecord, ...]
    cursor: str
    """Goes on after them."""
    more: bool
    anew: bool
    """They are from the beginning: what was listed before may be of another database."""


class RecorderSource:
    """The sessions of one recorder's database.

    Args:
        store: opens the store; asked when it is first needed.
        now: the clock.
    """

    source = SOURCE
    tool = SOURCE

    def __init__(
        self,
        store: Callable[[], Store],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open = store
        self._opened: Store | None = None
        self._now = now

    @property
    def store(self) -> Store:
        """The store, opened.

        Raises:
            DebriefError: there is none, or it is away.
        """
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def close(self) -> None:
        """Close the store; it is opened again when it is needed."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def scan(self, lake: Lake) -> list[ScanEntry]:
        """Return an entry for each session of the database.

        A database that is away costs nothing: what is remembered of it is returned, and an entry
        that says why there may be more.
        """
        stamp = lake.stamp(LISTING_TABLE, SOURCE)
        listed = {row.id: row for row in lake.read(LISTING_TABLE, SOURCE, ListedRecord)}
        cursor = stamp.inputs if stamp is not None and stamp.inputs else None
        failure: list[ScanEntry] = []
        try:
            self._list(lake, listed, cursor)
        except DebriefError as error:
            now = self._now()
            failure.append(
                ScanEntry(
                    source=SOURCE,
                    path=stored_path("database"),
                    started=now,
                    week=week_of(now),
                    reason=f"not listed: {error.reason}",
                )
            )
        return [*map(_entry, listed.values()), *failure]

    def reader(
        self, lake: Lake, entries: Sequence[ScanEntry], redactor: Redactor
    ) -> StoredRecordReader:
        """Return what reads the records of ``entries``, one at a time."""
        listed = {row.id: row for row in lake.read(LISTING_TABLE, SOURCE, ListedRecord)}
        weeks = {entry.session_id: entry.week for entry in entries}
        return StoredRecordReader(self, lake, listed, weeks)

    def changes(self, cursor: str | None, known: Mapping[str, ListedRecord] = {}) -> Changes:
        """Return the next records that are new or whose status was set, at most ``A_PAGE``.

        Args:
            cursor: of earlier changes; the beginning, if None. With one that the database does
                not know, because it is another one or was restored, everything is new again.
            known: by id: of those that are the same, the record is not looked at again.

        Raises:
            DebriefError: the database is away, or there is none.
        """
        anew = cursor is None
        try:
            page = self.store.changed(cursor, A_PAGE)
        except CursorError:
            anew = True
            page = self.store.changed(None, A_PAGE)
        return Changes(
            records=tuple(
                self._listed(session, known.get(str(session.id))) for session in page.items
            ),
            cursor=page.cursor or "",
            more=page.more,
            anew=anew,
        )

    def _list(self, lake: Lake, listed: dict[str, ListedRecord], cursor: str | None) -> None:
        """Bring ``listed`` up to date, and remember it after each page."""
        while True:
            changes = self.changes(cursor, listed)
            if changes.anew:
                listed.clear()
            listed.update({row.id: row for row in changes.records})
            rows = sorted(listed.values(), key=lambda row: row.id)
            lake.write(LISTING_TABLE, SOURCE, rows, ListedRecord, partial(str, changes.cursor))
            if not changes.more:
                return
            cursor = changes.cursor

    def _listed(self, session: StoredSession, known: ListedRecord | None) -> ListedRecord:
        if known is not None and known.sha256 == session.sha256:
            return msgspec.structs.replace(known, status=session.status)
        try:
            started = decode_meta(self.store.record_text(session.id)).started_at
        except (*NOT_A_RECORD, NotFoundError):
            started = session.created_at
        return ListedRecord(
            id=str(session.id), sha256=session.sha256, status=session.status, started=started
        )


class StoredRecordReader(ServerReader):
    """Reads stored records as the readers of transcripts read theirs."""

    source = SOURCE
    tool = SOURCE

    def __init__(
        self,
        source: RecorderSource,
        lake: Lake,
        listed: dict[str, ListedRecord],
        weeks: dict[str, str],
    ) -> None:
        self._source = source
        self._lake = lake
        self._listed = listed
        self._weeks = weeks

    def read(self, transcript: Transcript) -> Session:
        """Read one record from the store, or from the lake when the store is away.

        Raises:
            NoSession: the database has it no more.
            InputError: it cannot be read, and why.
        """
        record_id = transcript.path.removeprefix(stored_path(""))
        listed = self._listed.get(record_id)
        status = listed.status if listed is not None else None
        try:
            text = self._source.store.record_text(record_id)
        except NotFoundError as error:
            raise NoSession(transcript.path, "the database has it no more") from error
        except DebriefError as error:
            standing = self._standing(record_id, status)
            if standing is None:
                raise InputError(transcript.path, f"not read: {error.reason}") from error
            return standing
        return session_of(text, transcript.path, status)

    def _standing(self, record_id: str, status: Status | None) -> Session | None:
        """Return what the lake holds of a record, which never changes but for its status."""
        week = self._weeks.get(record_id)
        if week is None:
            return None
        rows = self._lake.read(SESSIONS_TABLE, week, Session, only=("id", {record_id}))
        found = next(iter(rows), None)
        if found is None or found.source != SOURCE or status is None:
            return found
        withheld = bool(found.recorded and (found.recorded.withheld or not found.recorded.verified))
        return msgspec.structs.replace(found, status="draft" if withheld else status)


def source_from_settings(settings: Settings, asked: bool = False) -> RecorderSource | None:
    """Return the recorder's database as a source when ``DEBRIEF_RECORDER=1`` asks for it.

    It is the one that ``DATABASE_URL`` names, else the embedded one of this machine.

    Args:
        settings: of this machine.
        asked: somebody asks for it, whatever the setting says.
    """
    return recorder_source(settings) if asked or settings.recorder else None


def recorder_source(settings: Settings) -> RecorderSource:
    """Return the configured database as a source; nothing is connected yet."""
    return RecorderSource(lambda: _StoreOfSettings(settings))


class _StoreOfSettings:
    """The configured store, its database running."""

    def __init__(self, settings: Settings) -> None:
        from debrief.recorder.postgres import database_url
        from debrief.recorder.storage.store import RecordStore

        self._store = RecordStore(database_url(settings))

    def changed(self, cursor: str | None, limit: int) -> Page[StoredSession]:
        """Return sessions that are new or whose status was set."""
        return self._store.sessions(cursor=cursor, limit=limit, order="changed")

    def record_text(self, id: UUID | str) -> bytes:
        """Return a stored record."""
        return self._store.record_text(id)

    def close(self) -> None:
        """Close all connections."""
        self._store.close()


def _entry(listed: ListedRecord) -> ScanEntry:
    return ScanEntry(
        source=SOURCE,
        path=stored_path(listed.id),
        session_id=listed.id,
        own_id=listed.id,
        own_started=listed.started,
        started=listed.started,
        week=week_of(listed.started),
        version=listed.version,
    )

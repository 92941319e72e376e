"""The recorder's database as a source of sessions.

The store lists what was added or changed since a cursor, and the lake keeps cursor and listing. A
record is read from the store when its week is; while the database is away, earlier sessions stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import DebriefError, InputError
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.recorder.contracts import Status
from debrief.recorder.storage.rows import CursorError, NotFoundError, StoredSession
from debrief.redaction.redactor import Redactor
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session
from debrief.sessions.readers.base import NoSession, Transcript
from debrief.sessions.readers.recorder import SOURCE, session_of, stored_path
from debrief.sessions.readers.recorder.records import NOT_A_RECORD, decode_meta
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SESSIONS_TABLE
from debrief.settings import Settings

if TYPE_CHECKING:
    from debrief.recorder.storage.store import RecordStore

LISTING_TABLE = "recorder_listing"
PAGE_SIZE = 500
_CONVERSION = "1"
"""Raised when records are made into sessions in another way: all are read again."""


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


class RecorderSource:
    """The sessions of one recorder's database.

    Args:
        open_store: opens the store when it is first needed.
        now: returns the time.
    """

    source = SOURCE
    tool = SOURCE

    def __init__(
        self,
        open_store: Callable[[], RecordStore],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._open = open_store
        self._now = now

    @cached_property
    def store(self) -> RecordStore:
        """The store, opened.

        Raises:
            DebriefError: there is none, or it is away.
        """
        return self._open()

    def scan(self, lake: Lake, redactor: Redactor) -> list[ScanEntry]:
        """Return an entry for each session of the database.

        While the database is away, the entries of the last listing are returned, and one that
        says why there may be more; it is the same all week, so that it asks for no run twice.
        """
        listed = _listing(lake)
        away: list[ScanEntry] = []
        try:
            self._update_listing(lake, listed, Forgotten.of(lake, redactor))
        except DebriefError as error:
            path, reason = stored_path("database"), f"not listed: {error.reason}"
            week = week_of(self._now())
            began = datetime.fromisoformat(week).replace(tzinfo=UTC)
            away = [
                ScanEntry(
                    source=SOURCE,
                    path=path,
                    started=began,
                    week=week,
                    reason=reason,
                    cause="server",
                )
            ]
        return [*map(_entry, listed.values()), *away]

    def reader(
        self, lake: Lake, entries: Sequence[ScanEntry], redactor: Redactor
    ) -> StoredRecordReader:
        """Return a reader of the records of ``entries``."""
        weeks = {entry.session_id: entry.week for entry in entries}
        return StoredRecordReader(self, lake, _listing(lake), weeks)

    def _update_listing(
        self, lake: Lake, listed: dict[str, ListedRecord], forgotten: Forgotten
    ) -> None:
        """Update ``listed``, and store it after each page."""
        stamp = lake.stamp(LISTING_TABLE, SOURCE)
        cursor = stamp.inputs or None if stamp is not None else None
        known, more = dict(listed), True
        while more:
            try:
                page = self.store.sessions(cursor=cursor, limit=PAGE_SIZE, order="changed")
            except CursorError:
                # Of another database, or of this one before it was restored.
                listed.clear()
                page = self.store.sessions(limit=PAGE_SIZE, order="changed")
            new = (item for item in page.items if not forgotten.session(str(item.id)))
            found = (self._listed(session, known.get(str(session.id))) for session in new)
            listed.update({row.id: row for row in found})
            rows = sorted(listed.values(), key=lambda row: row.id)
            lake.write(LISTING_TABLE, SOURCE, rows, ListedRecord, partial(str, page.cursor))
            cursor, more = page.cursor, page.more

    def _listed(self, session: StoredSession, before: ListedRecord | None) -> ListedRecord:
        if before is not None and before.sha256 == session.sha256:
            return replace(before, status=session.status)
        try:
            started = decode_meta(self.store.record_text(session.id)).started_at
        except (*NOT_A_RECORD, NotFoundError):
            started = session.created_at
        return ListedRecord(
            id=str(session.id), sha256=session.sha256, status=session.status, started=started
        )


class StoredRecordReader(Struct, frozen=True):
    """Reads stored records as the readers of transcripts read theirs."""

    source: RecorderSource
    lake: Lake
    listed: dict[str, ListedRecord]
    weeks: dict[str, str]

    def read(self, transcript: Transcript) -> Session:
        """Read one record from the store, or from the lake while the store is away.

        Raises:
            NoSession: it is no longer in the database.
            InputError: it cannot be read, and why.
        """
        record_id = transcript.path.removeprefix(stored_path(""))
        listed = self.listed.get(record_id)
        status = listed.status if listed is not None else None
        try:
            text = self.source.store.record_text(UUID(record_id))
        except NotFoundError as error:
            raise NoSession(transcript.path, "the database has it no more") from error
        except DebriefError as error:
            session = self._from_lake(record_id, status)
            if session is None:
                raise InputError(transcript.path, f"not read: {error.reason}") from error
            return session
        return session_of(text, transcript.path, status)

    def _from_lake(self, record_id: str, status: Status | None) -> Session | None:
        """Return the session that was read before; only its status can have changed."""
        week = self.weeks.get(record_id)
        if week is None:
            return None
        rows = self.lake.read(SESSIONS_TABLE, week, Session, only=("id", {record_id}))
        session = next(iter(rows), None)
        if session is None or session.source != SOURCE or status is None:
            return session
        recorded = session.recorded
        is_draft = recorded and (recorded.withheld or not recorded.verified)
        return replace(session, status="draft" if is_draft else status)


def recorder_source(settings: Settings) -> RecorderSource:
    """Return the database of ``DATABASE_URL``, else the embedded one, as a source.

    Nothing is connected or started yet.
    """

    def open_store() -> RecordStore:
        from debrief.recorder.postgres import database_url
        from debrief.recorder.storage.store import RecordStore

        return RecordStore(database_url(settings))

    return RecorderSource(open_store)


def _listing(lake: Lake) -> dict[str, ListedRecord]:
    return {row.id: row for row in lake.read(LISTING_TABLE, SOURCE, ListedRecord)}


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

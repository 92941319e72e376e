"""A Langfuse server as a source of sessions: listed and fetched once, and again when they change.

No server can be asked for what arrived since, only for what began since, and some senders backdate
what they send. So a run lists what began lately, and once a day everything: that finds what came
late, and what is gone. Both go window by window, remembered in the lake after each, so that an
interrupted listing goes on where it was. What was fetched is kept in the lake, redacted, one file
a session: it is fetched again when, and only when, its listing changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.errors import DebriefError, InputError, LangfuseError
from debrief.keys import digest_of, week_of
from debrief.lake import Lake
from debrief.langfuse.client import LangfuseClient, langfuse_for
from debrief.langfuse.errors import LangfuseAwayError
from debrief.langfuse.fetcher import SOURCE, SessionFetcher, path_of
from debrief.langfuse.listing import ListedSession, Listing, list_session
from debrief.redaction.finder import placeholders
from debrief.redaction.redactor import Redactor
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session
from debrief.sessions.readers.base import Transcript
from debrief.sessions.redaction import redact_name, redact_session
from debrief.sessions.scanning import ScanEntry
from debrief.settings import Settings

LISTING_TABLE, FETCHED_TABLE = "server_listing", "server_sessions"
FIRST = datetime(2023, 1, 1, tzinfo=UTC)
"""Before the first of all servers had a session."""
WINDOW = timedelta(days=28)
LOOKBACK = timedelta(days=7)
"""How late an observation may reach the server and still be noticed by the next listing."""
FRESH = timedelta(minutes=2)
"""How long a listing holds: a run over many weeks asks for one."""

_CONVERSION = "5"
"""Raised when observations are made into sessions in another way: all are fetched again."""
_SECRET_ID = "not fetched: its id holds a secret, which is not kept to ask for it"
_LEFT_OUT = "left out: not in DEBRIEF_LANGFUSE_ENVIRONMENTS, or without DEBRIEF_LANGFUSE_TAGS"
_ALL_GONE = (
    "it shows none of the sessions that it had; they stay in the lake unless the next listing of "
    "everything shows none either"
)
_AT_ONCE = 4


class ServerFilter(Struct, frozen=True, kw_only=True):
    """Which sessions of a server are read."""

    since: datetime = FIRST
    """Nothing that began before is asked for."""
    environments: frozenset[str] = frozenset()
    """One of them is that of a session's observations; empty for any."""
    tags: frozenset[str] = frozenset()
    """A session has one of them; empty for any."""

    def has(self, listing: Listing) -> bool:
        """Return whether a session is one of them."""
        return (not self.environments or bool(self.environments & listing.environments)) and (
            not self.tags or bool(self.tags & listing.tags)
        )


ALL = ServerFilter()


class _Mark(Struct, frozen=True, kw_only=True):
    """How far a listing came, as it is stamped on the listed sessions."""

    of: str
    """The server, its project and what is chosen of it: another one is listed anew."""
    until: datetime
    began: datetime
    """When the latest listing of everything began."""
    ended: datetime | None = None
    """When the latest listing ended; None for an interrupted one."""
    emptied: datetime | None = None
    """When the listing of everything began that showed none of several sessions."""


@dataclass(eq=False)
class LangfuseSource:
    """The sessions of one server."""

    client: LangfuseClient
    """Of the server; its retries and pace hold."""
    only: ServerFilter = ALL
    """Which of them; other ones list everything anew."""
    every: timedelta = timedelta(days=1)
    """How often everything is listed."""
    keep_gone: bool = False
    """Sessions that are deleted on the server stay in the lake."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """The clock."""

    source: str = SOURCE
    tool: str = SOURCE

    def scan(self, lake: Lake, redactor: Redactor) -> list[ScanEntry]:
        """Return an entry for each session that the server has or had.

        A session whose id holds a secret cannot be asked for without keeping the secret: its
        entry says so. So does that of one that is not chosen, and that of one that is gone on the
        server, which takes it out of the lake. A server that is away costs nothing: what is
        remembered of it is returned, and an entry that says why there may be more.
        """
        listed, mark = self._remembered(lake)
        if not mark.ended or mark.emptied or self.now() - mark.ended >= FRESH:
            try:
                self._list(lake, listed, mark, redactor)
            except DebriefError as error:
                reason, where = f"not listed: {error.reason}", path_of(self.client.host)
                now = self.now()
                missed = ScanEntry(
                    source=SOURCE,
                    path=where,
                    started=now,
                    week=week_of(now),
                    reason=reason,
                    cause="server",
                )
                return [*_entries(listed), missed]
        return _entries(listed)

    def reader(self, lake: Lake, entries: Sequence[ScanEntry], redactor: Redactor) -> FetchedReader:
        """Bring the sessions of ``entries`` into the lake, several at once; return their reader.

        After the first failure to reach the server no other session is tried.
        """
        reader = FetchedReader(lake)
        made_from = {
            entry.path: digest_of(_CONVERSION, redactor.identity, entry.version)
            for entry in entries
        }
        stamps = {e.path: lake.stamp(FETCHED_TABLE, _key(e.session_id)) for e in entries}
        due = [e for e in entries if not (was := stamps[e.path]) or was.inputs != made_from[e.path]]
        if not due:
            return reader
        known = {row.id: row for row in lake.read(LISTING_TABLE, SOURCE, ListedSession)}
        fetcher = SessionFetcher(
            self.client, lambda session: redact_session(session, redactor), self.now
        )
        away = threading.Event()

        def bring(entry: ScanEntry) -> None:
            if away.is_set():
                reader.failures[entry.path] = LangfuseError(
                    entry.path, "not fetched: the server is away"
                )
                return
            one = known.get(entry.session_id)
            span, count = ((one.started, one.last), one.observations) if one else (None, None)
            try:
                session = fetcher.fetch_session(entry.session_id, span, count)
            except DebriefError as error:
                if isinstance(error, LangfuseAwayError):
                    away.set()
                kind = LangfuseError if isinstance(error, LangfuseError) else InputError
                reader.failures[entry.path] = kind(entry.path, f"not fetched: {error.reason}")
                return
            key = _key(entry.session_id)
            lake.write(FETCHED_TABLE, key, [session], Session, lambda: made_from[entry.path])

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fetch") as pool:
            list(pool.map(bring, due))
        return reader

    def _remembered(self, lake: Lake) -> tuple[dict[str, ListedSession], _Mark]:
        """Return what was listed, and how far; nothing if something else was."""
        chosen = (self.only.since, sorted(self.only.environments), sorted(self.only.tags))
        of = digest_of(self.client.host, self.client.public_key, chosen)
        stamp = lake.stamp(LISTING_TABLE, SOURCE)
        try:
            mark = msgspec.json.decode(stamp.inputs if stamp else "", type=_Mark)
        except msgspec.DecodeError:
            mark = None
        if mark is None or mark.of != of:
            return {}, _Mark(of=of, until=self.only.since, began=self.now())
        return {row.id: row for row in lake.read(LISTING_TABLE, SOURCE, ListedSession)}, mark

    def _list(
        self, lake: Lake, listed: dict[str, ListedSession], mark: _Mark, redactor: Redactor
    ) -> None:
        """List what began since the last time, or everything when it is due or was interrupted.

        Raises:
            DebriefError: the server does not tell; what it told before that is remembered.
        """
        now, since = self.now(), self.only.since
        if mark.ended is not None:
            is_due = now - mark.began >= self.every
            begin = since if is_due else max(since, mark.until - LOOKBACK)
            mark = replace(mark, until=begin, ended=None, began=now if is_due else mark.began)

        def remember() -> None:
            rows = [listed[name] for name in sorted(listed)]
            stamp = msgspec.json.encode(mark).decode()
            lake.write(LISTING_TABLE, SOURCE, rows, ListedSession, lambda: stamp)

        known, forgotten = dict[str, str](), Forgotten.of(lake, redactor)
        for begin, end in _windows(mark.until, now):
            first = None if begin == FIRST else begin  # some clocks are far in the past,
            last = None if end == now else end  # or ahead
            self._window(listed, known, first, last, redactor, forgotten)
            mark = replace(mark, until=end)
            remember()
        gone = [row for row in listed.values() if row.seen < mark.began and not row.is_gone]
        if gone and not self.keep_gone:
            is_empty = not any(row.seen >= mark.began for row in listed.values())
            if is_empty and len(gone) > 1 and mark.emptied in (None, mark.began):
                mark = replace(mark, ended=self.now(), emptied=mark.began)
                remember()
                raise InputError(self.client.host, _ALL_GONE)
            for row in gone:
                listed[row.id] = self._looked_for(lake, row)
        mark = replace(mark, ended=self.now(), emptied=None)
        remember()

    def _window(
        self,
        listed: dict[str, ListedSession],
        known: dict[str, str],
        begin: datetime | None,
        end: datetime | None,
        redactor: Redactor,
        forgotten: Forgotten,
    ) -> None:
        listing = Listing.between(self.client, begin, end, known)
        for session_id, found in listing.items():
            name = redact_name(session_id, redactor).text
            if forgotten.session(name):
                continue
            before = listed.get(name)
            if before is not None and begin and before.started < begin:
                found = list_session(self.client, session_id) or found
            reason = "" if self.only.has(found) else _LEFT_OUT
            listed[name] = found.listed(name, self.now(), reason)

    def _looked_for(self, lake: Lake, row: ListedSession) -> ListedSession:
        """Return a session that a listing of everything did not show, by what the server says of
        it: nothing of one that is gone, which leaves the lake."""
        found = None if placeholders(row.id) else list_session(self.client, row.id)
        if found is not None:
            return found.listed(row.id, self.now(), row.reason)
        lake.drop(FETCHED_TABLE, _key(row.id))
        day = self.now().date().isoformat()
        reason = f"taken out: it was deleted on the server, as seen on {day}"
        return replace(row, reason=reason, is_gone=True)


class FetchedReader:
    """Reads sessions that were fetched, as the readers of transcripts read theirs."""

    def __init__(self, lake: Lake) -> None:
        self.failures: dict[str, InputError | LangfuseError] = {}
        """Why a session was not fetched, by path."""
        self._lake = lake

    def read(self, transcript: Transcript) -> Session:
        """Return a session that was fetched.

        Raises:
            LangfuseError: the server did not answer.
            InputError: it was not fetched, and why.
        """
        if failure := self.failures.get(transcript.path):
            raise failure
        key = _key(transcript.path.removeprefix(path_of("")))
        for session in self._lake.read(FETCHED_TABLE, key, Session):
            return session
        raise InputError(transcript.path, "was not fetched")


def source_from_settings(settings: Settings) -> LangfuseSource | None:
    """Return the configured server as a source; None where ``DEBRIEF_LANGFUSE=off`` says so.

    ``DEBRIEF_LANGFUSE_SINCE``, a date, leaves out what began before.

    Raises:
        ConfigurationError: no server is configured.
    """
    if not settings.langfuse:
        return None
    since = settings.langfuse_since or FIRST
    only = ServerFilter(
        since=since if since.tzinfo else since.replace(tzinfo=UTC),
        environments=frozenset(settings.langfuse_environments),
        tags=frozenset(settings.langfuse_tags),
    )
    return LangfuseSource(
        langfuse_for("DEBRIEF_LANGFUSE_SESSIONS", settings),
        only,
        timedelta(days=settings.langfuse_list_days),
        settings.langfuse_keep_gone,
    )


def _windows(begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    while begin < end:
        until = min(begin + WINDOW, end)
        yield begin, until
        begin = until


def _entries(listed: Mapping[str, ListedSession]) -> list[ScanEntry]:
    return [_entry(listed[name]) for name in sorted(listed)]


def _entry(listed: ListedSession) -> ScanEntry:
    held = bool(placeholders(listed.id))
    return ScanEntry(
        source=SOURCE,
        path=path_of(listed.id),
        session_id="" if held or listed.reason else listed.id,
        own_id="" if held or listed.reason else listed.id,
        reason=listed.reason or (_SECRET_ID if held else ""),
        expected=bool(listed.reason),
        own_started=listed.started,
        started=listed.started,
        week=week_of(listed.started),
        version=listed.stamp,
    )


def _key(session_id: str) -> str:
    return digest_of(session_id)[:32]

"""The sessions stage: from the folders that are searched to the tables of the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.redaction.sessions import redact_session
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Reader
from debrief.sessions.sources import Scan, ScanEntry, read_week, scan

SESSIONS_TABLE, UNREAD_TABLE = "raw_sessions", "unread_transcripts"
SCAN_TABLE, SCAN_PARTITION = "scan", "transcripts"
NORMAL_FORM = "1"
"""Raised when readers or redaction give other rows for the same transcripts: all are read again."""


class SessionServer(Protocol):
    """A source of sessions that is no folder."""

    source: str

    def scan(self, lake: Lake) -> Sequence[ScanEntry]:
        """Return what it has; one that is away returns what is known of it, and why no more."""
        ...

    def reader(self, lake: Lake, entries: Sequence[ScanEntry], redactor: Redactor) -> Reader:
        """Bring the sessions of ``entries`` here, and return what reads them."""
        ...


def scan_into(
    lake: Lake,
    folders: Sequence[Path],
    progress: Callable[[int], None] | None = None,
    server: SessionServer | None = None,
) -> Scan:
    """Search ``folders``, opening only what changed since the lake's last scan, and file it.

    A server's session of which there is a transcript is read from the transcript, which tells
    more: the server's entry says so.
    """
    remembered = list(lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry))
    found = scan(folders, remembered, progress=progress)
    if server is not None:
        found = Scan((*found.entries, *_not_here(server.scan(lake), found)), found.opened)
    lake.write(SCAN_TABLE, SCAN_PARTITION, found.entries, ScanEntry)
    return found


def _not_here(entries: Iterable[ScanEntry], found: Scan) -> Iterator[ScanEntry]:
    here = {entry.session_id for entry in found.entries if entry.session_id}
    for entry in entries:
        if entry.session_id in here:
            reason = "the session is read from its own transcript"
            entry = replace(entry, session_id="", version="", reason=reason, expected=True)
        yield entry


def store_week(
    lake: Lake, found: Scan, week: str, redactor: Redactor, server: SessionServer | None = None
) -> bool:
    """Read a week's transcripts into the lake; True when nothing had to be read.

    Sessions stream through: memory is bounded by the largest, not by the week.
    """
    made_from = digest_of(NORMAL_FORM, redactor.placeholder("key", ""), found.digest(week))
    stamp = lake.stamp(SESSIONS_TABLE, week)
    if stamp is not None and stamp.inputs == made_from:
        return True
    readers = dict(READERS)
    if server is not None:
        of_server = [e for e in found.of_week(week) if e.source == server.source and e.session_id]
        readers[server.source] = server.reader(lake, of_server, redactor)
    unread: list[UnreadTranscript] = []

    def sessions() -> Iterator[Session]:
        for item in read_week(
            found, week, lambda session: redact_session(session, redactor), readers=readers
        ):
            if isinstance(item, Session):
                yield item
            else:
                unread.append(item)

    def final() -> str:
        lake.write(UNREAD_TABLE, week, unread, UnreadTranscript)
        return made_from if all(row.expected for row in unread) else ""

    lake.write(SESSIONS_TABLE, week, sessions(), Session, final)
    return False


def transcripts_of(lake: Lake, week: str) -> set[str]:
    """Return the paths that a week's stored sessions were read from."""
    heads = lake.read(SESSIONS_TABLE, week, SessionHead)
    return {transcript.path for head in heads for transcript in head.transcripts}

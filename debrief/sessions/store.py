"""The sessions stage: from the folders that are searched to the tables of the lake."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.redaction.sessions import redact_session
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import Session, UnreadTranscript
from debrief.sessions.sources import Scan, ScanEntry, read_week, scan

SESSIONS_TABLE, UNREAD_TABLE = "raw_sessions", "unread_transcripts"
SCAN_TABLE, SCAN_PARTITION = "scan", "transcripts"
NORMAL_FORM = "1"
"""Raised when readers or redaction give other rows for the same transcripts: all are read again."""


def scan_into(
    lake: Lake, folders: Sequence[Path], progress: Callable[[int], None] | None = None
) -> Scan:
    """Search ``folders``, opening only what changed since the lake's last scan, and file it."""
    remembered = list(lake.read(SCAN_TABLE, SCAN_PARTITION, ScanEntry))
    found = scan(folders, remembered, progress=progress)
    lake.write(SCAN_TABLE, SCAN_PARTITION, found.entries, ScanEntry)
    return found


def store_week(lake: Lake, found: Scan, week: str, redactor: Redactor) -> bool:
    """Read a week's transcripts into the lake; True when nothing had to be read.

    Sessions stream through: memory is bounded by the largest, not by the week.
    """
    made_from = digest_of(NORMAL_FORM, redactor.placeholder("key", ""), found.digest(week))
    stamp = lake.stamp(SESSIONS_TABLE, week)
    if stamp is not None and stamp.inputs == made_from:
        return True
    unread: list[UnreadTranscript] = []

    def sessions() -> Iterator[Session]:
        for item in read_week(found, week, lambda session: redact_session(session, redactor)):
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

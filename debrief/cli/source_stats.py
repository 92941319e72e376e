"""What ``debrief sources`` counts of each source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct, field

from debrief.sessions.model import Session, Usage
from debrief.sessions.scanning import Scan, is_reported
from debrief.sessions.sources import read_week

_UNKNOWN = "(no known tool)"
READ_FIELDS = ("turns", "usage", "lines_added", "lines_removed", "passed_over")
"""What is counted only when everything is read."""


class SourceStats(Struct):
    """What was found of one source; the second half only after everything was read."""

    transcripts: int = 0
    files: int = 0
    """With those that complete a transcript: subagents', settings."""
    bytes: int = 0
    sessions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    unread: Counter[str] = field(default_factory=Counter)
    """How many transcripts gave no session, by reason."""
    empty: Counter[str] = field(default_factory=Counter)
    """The same of files that never held one: reported, but no failure."""
    examples: dict[str, str] = field(default_factory=dict)
    """By reason, the first path that it was reported for, and the line in it."""
    turns: int = 0
    usage: Usage = Usage()
    lines_added: int = 0
    lines_removed: int = 0
    passed_over: int = 0
    """Places in transcripts that could not be read."""

    def add_times(self, first: datetime, last: datetime) -> None:
        """Widen the range of times."""
        self.first = min(self.first or first, first)
        self.last = max(self.last or last, last)

    def add_failure(self, path: str, line: int, reason: str, expected: bool) -> None:
        """Count a transcript that gave no session."""
        (self.empty if expected else self.unread)[reason] += 1
        self.examples.setdefault(reason, f"{path}:{line}" if line else path)


def scan_stats(found: Scan) -> dict[str, SourceStats]:
    """Return what a scan says of each source, by name; files of no known tool come last."""
    stats: dict[str, SourceStats] = {}
    sessions: dict[str, set[str]] = {}
    counted: set[str] = set()
    for entry in found.entries:
        if not is_reported(entry):
            continue
        own = stats.setdefault(entry.source or _UNKNOWN, SourceStats())
        own.transcripts += 1
        for stamp in entry.files:
            if stamp.path not in counted:
                counted.add(stamp.path)
                own.files += 1
                own.bytes += stamp.size
        if entry.session_id:
            sessions.setdefault(entry.source, set()).add(entry.session_id)
            own.add_times(entry.started, entry.started)
        else:
            own.add_failure(entry.path, entry.line, entry.reason, entry.expected)
    for source, ids in sessions.items():
        stats[source].sessions = len(ids)
    return dict(sorted(stats.items(), key=lambda item: (item[0] == _UNKNOWN, item[0])))


def read_stats(found: Scan, stats: dict[str, SourceStats], advance: Callable[[], None]) -> None:
    """Read every transcript of a scan, one session at a time, and add up what it gives.

    Args:
        found: the scan.
        stats: of the scan; what reading finds replaces sessions, times and failures.
        advance: is called after each session.
    """
    for own in stats.values():
        own.sessions, own.first, own.last = 0, None, None
        for counts in (own.unread, own.empty, own.examples):
            counts.clear()
    for week in found.weeks():
        for item in read_week(found, week):
            own = stats.setdefault(item.source or _UNKNOWN, SourceStats())
            if isinstance(item, Session):
                own.sessions += 1
                own.turns += item.prompt_count
                own.usage += item.usage
                own.lines_added += item.lines_added
                own.lines_removed += item.lines_removed
                own.passed_over += len(item.problems)
                own.add_times(item.started, item.ended)
            else:
                own.add_failure(item.path, item.line, item.reason, item.expected)
            advance()

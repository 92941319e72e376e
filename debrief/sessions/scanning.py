"""What a scan of the folders remembers of each transcript, and how copies of a session unite."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from debrief.digests import digest_of
from debrief.sessions.readers.files import FileStamp
from debrief.sessions.readers.values import moment_of_change
from debrief.weeks import week_of

_UNIQUE = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


class ScanEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One transcript, or a file that is none, as a scan found it."""

    source: str
    """The reader that claims it; empty when none does."""
    path: str
    size: int = 0
    """Bytes."""
    mtime_ns: int = 0
    companions: tuple[FileStamp, ...] = ()
    session_id: str = ""
    """The session that it belongs to, unique over the scan; empty when it holds none."""
    own_id: str = ""
    """The session's id in the transcript itself."""
    root: str = ""
    """Identifies the record that the conversation begins with; see ``Peek.root``."""
    own_started: datetime | None = None
    """The time of the transcript's first record that has one."""
    started: datetime
    """When the session began, copies and parts of it considered."""
    week: str
    """Of ``started``."""
    reason: str = ""
    """Why it holds no session; empty when it does."""
    line: int = 0
    expected: bool = False
    """See ``UnreadTranscript.expected``."""
    version: str = ""
    """Of a session on a server: changes when the session does."""
    looked_for: tuple[str, ...] = ()
    """Of a file that no reader claims, the sources that were asked."""

    @property
    def is_part(self) -> bool:
        """Whether it is one of several in a file, which is its companion then."""
        return any(self.path.startswith(f"{stamp.path}#") for stamp in self.companions)

    @property
    def is_on_server(self) -> bool:
        """Whether it is a session that a server has, and is read from there."""
        return bool(self.version and self.session_id)

    @property
    def files(self) -> tuple[FileStamp, ...]:
        """The file itself and its companions; a change in any means reading again."""
        own = () if self.is_part else (FileStamp(self.path, self.size, self.mtime_ns),)
        return (*own, *self.companions)


class MirrorOrigin(Struct, frozen=True):
    """Where files of this machine were brought from."""

    here: str
    """What their paths begin with."""
    there: str
    """What the addresses in the store begin with."""


def shared_path(path: str, origins: Iterable[MirrorOrigin]) -> str:
    """Return the address of a file that was brought here, or the path of any other."""
    for origin in origins:
        if path.startswith(origin.here):
            return origin.there + path[len(origin.here) :]
    return path


def shared_entry(entry: ScanEntry, origins: tuple[MirrorOrigin, ...]) -> ScanEntry:
    """Return an entry as all machines know it."""
    if not origins or (path := shared_path(entry.path, origins)) == entry.path:
        return entry
    companions = (replace(each, path=shared_path(each.path, origins)) for each in entry.companions)
    return replace(entry, path=path, companions=tuple(companions))


def local_entry(entry: ScanEntry, origins: tuple[MirrorOrigin, ...]) -> ScanEntry:
    """Return an entry, as all machines know it, with the paths of this machine."""
    return shared_entry(entry, tuple(MirrorOrigin(each.there, each.here) for each in origins))


class Scan(Struct, frozen=True):
    """Every transcript below the folders that were scanned."""

    entries: tuple[ScanEntry, ...] = ()
    """In path order; storable as a table, and what the next scan is to remember."""
    opened: int = 0
    """Transcripts that had to be opened, being new or changed."""
    origins: tuple[MirrorOrigin, ...] = ()
    """Of the entries that were brought to this machine."""
    gone: tuple[ScanEntry, ...] = ()
    """Transcripts of these sessions that were here at an earlier scan: they still say what a
    session is called and when it began."""

    def weeks(self) -> list[str]:
        """Return the weeks that have sessions or unread transcripts, in order."""
        return sorted({entry.week for entry in self.entries if is_reported(entry)})

    def of_week(self, week: str) -> list[ScanEntry]:
        """Return the week's entries, in path order."""
        return [entry for entry in self.entries if entry.week == week and is_reported(entry)]

    def digest(self, week: str) -> str:
        """Return a SHA-256 that changes when a file of the week does, or is added or removed."""
        return digest_of([shared_entry(entry, self.origins) for entry in self.of_week(week)])


def is_reported(entry: ScanEntry) -> bool:
    """Return whether the entry is a transcript or was meant to be one, not just any JSON file."""
    return bool(entry.source or entry.reason)


def identified(
    entries: Iterable[ScanEntry], origins: tuple[MirrorOrigin, ...] = ()
) -> tuple[ScanEntry, ...]:
    """Give every transcript the session that it belongs to, and that session's first time.

    Transcripts are of one session when they tell the same id, or begin with the same record: a
    checkpoint's copy, a resumption, a part in another folder. Ids that a tool would never give
    (``test``) unite only transcripts that begin alike.
    """
    entries = sorted(entries, key=lambda entry: entry.path)
    held = [entry for entry in entries if entry.own_id]
    groups = _groups(held)
    names = _names(groups, origins)
    settled: dict[str, ScanEntry] = {}
    for group, name in zip(groups, names, strict=True):
        times = [entry.own_started for entry in group if entry.own_started is not None]
        started = min(times or [moment_of_change(entry.mtime_ns) for entry in group])
        week = week_of(started)
        for entry in group:
            settled[entry.path] = replace(entry, session_id=name, started=started, week=week)
    return tuple(settled.get(entry.path, entry) for entry in entries)


def _groups(entries: list[ScanEntry]) -> list[list[ScanEntry]]:
    leaders = list(range(len(entries)))

    def leader(index: int) -> int:
        while leaders[index] != index:
            leaders[index] = leaders[leaders[index]]
            index = leaders[index]
        return index

    first_with: dict[tuple[str, ...], int] = {}
    for index, entry in enumerate(entries):
        unique = _UNIQUE.search(entry.own_id) is not None or not entry.root
        keys: list[tuple[str, ...]] = [
            ("id", entry.source, entry.own_id, "" if unique else entry.root)
        ]
        if _UNIQUE.fullmatch(entry.root):
            keys.append(("root", entry.source, entry.root))
        for key in keys:
            other = leader(first_with.setdefault(key, index))
            leaders[max(other, leader(index))] = min(other, leader(index))
    groups: dict[int, list[ScanEntry]] = {}
    for index, entry in enumerate(entries):
        groups.setdefault(leader(index), []).append(entry)
    return list(groups.values())


def _names(groups: list[list[ScanEntry]], origins: tuple[MirrorOrigin, ...]) -> list[str]:
    """Return one name a group: its own id, the smallest of several, made unique where needed."""
    names: list[str] = []
    taken: set[str] = set()
    for group in groups:
        name = min(entry.own_id for entry in group)
        if name in taken:
            first = group[0]
            mark = "\n".join((first.source, first.root or shared_path(first.path, origins)))
            name = f"{name}-{hashlib.sha256(mark.encode()).hexdigest()[:8]}"
        taken.add(name)
        names.append(name)
    return names

"""The tombstones of forgotten sessions: keyed digests, without ids.

A forgotten session's transcript may still be on somebody's disk, its original on a server. The
lake holds a tombstone for each way in which the session could come back, so that no machine of the
lake reads it in again. Without the key nobody can tell from a tombstone what it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import PurePath

from msgspec import Struct

from debrief.errors import ConfigurationError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.readers.values import UNIQUE
from debrief.sessions.scanning import ScanEntry, identities

TABLE = "forgotten"
_ANOTHER_KEY = "was written under another redaction key, and cannot be honoured"
_MOVE = (
    "Put the former key back. Or remove the lake's folder `forgotten`: then what was forgotten is "
    "read in again where it still is."
)


class Tombstone(Struct, frozen=True, kw_only=True):
    """One row: something that is not read in again."""

    mark: str
    """HMAC-SHA256, in hex, of a session's id, of what else its transcripts are known by, or of a
    person's name."""
    key: str
    """The same of a fixed text: which key it is under."""
    day: str
    """On which it was forgotten, as an ISO date in UTC."""


class Forgotten:
    """The tombstones of a lake.

    Args:
        redactor: has the key.
        rows: of the table.

    Raises:
        ConfigurationError: one is under another key.
    """

    def __init__(self, redactor: Redactor, rows: Iterable[Tombstone] = ()) -> None:
        self._redactor = redactor
        self._key = self._mark("key")[:16]
        self._days = {row.mark: row.day for row in rows if self._is_own(row)}

    @classmethod
    def of(cls, lake: Lake, redactor: Redactor) -> Forgotten:
        """Read the tombstones of a lake; errors as above."""
        return cls(redactor, lake.rows(TABLE, Tombstone))

    def __bool__(self) -> bool:
        return bool(self._days)

    def session(self, session_id: str) -> str:
        """Return the day on which a session was forgotten; empty when it was not."""
        return self._days.get(self._mark("session", session_id), "") if self._days else ""

    def person(self, name: str) -> str:
        """Return the day on which a person was forgotten; empty when that was not done."""
        return self._days.get(self._mark("person", name), "") if self._days else ""

    def has(self, entry: ScanEntry) -> bool:
        """Return whether a transcript is of a forgotten session, or a file in a folder of one.

        Args:
            entry: as all machines know it.
        """
        if not self._days:
            return False
        if not self._days.keys().isdisjoint(self._marks(entry)):
            return True
        folders = filter(UNIQUE.fullmatch, PurePath(entry.path).parts)
        return not entry.session_id and any(map(self.session, folders))

    def bury(
        self,
        lake: Lake,
        *,
        sessions: Iterable[str] = (),
        entries: Iterable[ScanEntry] = (),
        paths: Iterable[str] = (),
        people: Iterable[str] = (),
    ) -> None:
        """Write tombstones into the lake, and honour them from now on.

        Args:
            lake: the lake.
            sessions: ids of sessions.
            entries: their transcripts, as all machines know them.
            paths: of transcripts that no scan knows any more, and that hold nothing else.
            people: names.
        """
        marks = {self._mark("session", session) for session in sessions}
        marks |= {mark for entry in entries for mark in self._marks(entry)}
        marks |= {self._mark("path", path) for path in paths}
        marks |= {self._mark("person", name) for name in people}
        new = sorted(marks - self._days.keys())
        if not new:
            return
        day = datetime.now(UTC).date().isoformat()
        rows = [Tombstone(mark=mark, key=self._key, day=day) for mark in new]
        # A partition of its own, so that no two machines write the same.
        lake.write(TABLE, f"{day}-{digest_of(new)[:12]}", rows, Tombstone)
        self._days |= dict.fromkeys(new, day)

    def _marks(self, entry: ScanEntry) -> Iterator[str]:
        yield self._mark("path", entry.path)
        if entry.session_id:
            yield self._mark("session", entry.session_id)
        if entry.own_id:
            yield from (self._mark(*known) for known in identities(entry))

    def _mark(self, *parts: str) -> str:
        return self._redactor.keyed_digest("\0".join(("forgotten", *parts)))

    def _is_own(self, row: Tombstone) -> bool:
        if row.key != self._key:
            raise ConfigurationError(f"a tombstone of {row.day}", _ANOTHER_KEY, _MOVE)
        return True

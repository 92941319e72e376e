"""List a server's sessions in short, to see which changed without fetching them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime

from msgspec import Struct

from debrief.langfuse.client import LangfuseClient, Row, timestamp
from debrief.langfuse.fetcher import LISTING, listed_rows
from debrief.sessions.readers.values import moment


class ListedSession(Struct, frozen=True, kw_only=True):
    """A session as the server lists it."""

    id: str
    started: datetime
    """Of its first observation."""
    last: datetime
    """When its last observation began."""
    observations: int
    stamp: str
    """Changes when an observation is added, changed or taken away."""
    seen: datetime
    """When the server showed it last."""
    reason: str = ""
    """Why it is not read; empty when it is."""
    is_gone: bool = False
    """It was deleted on the server."""


class Listing:
    """What was seen of one session, or of one trace; in any order, each observation once."""

    def __init__(self) -> None:
        self.environments: set[str] = set()
        self.tags: set[str] = set()
        self._first: datetime | None = None
        self._last: datetime | None = None
        self._seen: dict[str, int] = {}
        """Observations that each row stands for, by its id."""
        self._sum = 0

    @classmethod
    def between(
        cls,
        client: LangfuseClient,
        begin: datetime | None,
        end: datetime | None,
        known: dict[str, str],
    ) -> dict[str, Listing]:
        """Return the sessions with observations that started in [begin, end), by id.

        By those observations alone: of a session that began before, ask ``list_session``. Servers
        show data from before their move to version 4 by traces alone.

        Args:
            client: of the server.
            begin: None for no limit.
            end: None for no limit.
            known: sessions by trace, from windows before: completed by this one's.

        Raises:
            LangfuseAwayError: the server cannot be reached or stays busy.
            RequestRefusedError: it refuses the request.
        """
        bounds = {"from": begin, "to": end}
        limits = {key: timestamp(at) for key, at in bounds.items() if at is not None}
        by_trace: dict[str, Listing] = {}

        def take(rows: Iterable[Row], is_new: bool) -> None:
            there = set(by_trace)
            for row in rows:
                trace = str(row.get("traceId") or row["id"])
                if is_new or trace not in there:
                    by_trace.setdefault(trace, cls()).add(row)
                    if session_id := str(row.get("sessionId") or ""):
                        known[trace] = session_id

        times = {f"{key}StartTime": at for key, at in limits.items()}
        take(client.observations(fields=LISTING, **times), True)
        times = {f"{key}Timestamp": at for key, at in limits.items()}
        take(client.traces(**times), False)
        sessions: dict[str, Listing] = {}
        for trace, part in by_trace.items():
            if trace in known:
                sessions.setdefault(known[trace], cls()).merge(part)
        return sessions

    def add(self, row: Row) -> None:
        """Take in an observation, or a trace of a server that lists no observations."""
        identity, own = str(row.get("id")), row.get("observations") or ()
        if identity in self._seen:
            return
        if "traceId" in row:
            at = moment(row.get("startTime"))
            parts = [identity, row.get("updatedAt") or row.get("endTime") or ""]
        else:
            at = moment(row.get("timestamp"))
            parts = [identity, row.get("updatedAt"), len(own), row.get("latency")]
        self._see(at, at)
        self._seen[identity] = max(len(own), 1)
        self.environments.add(str(row.get("environment") or "default"))
        self.tags.update(map(str, row.get("tags") or ()))
        digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
        self._sum = (self._sum + int.from_bytes(digest[:16])) % (1 << 128)

    def merge(self, other: Listing) -> None:
        """Take in what was seen of another part of the same."""
        self._see(other._first, other._last)
        self._seen |= other._seen
        self.environments |= other.environments
        self.tags |= other.tags
        self._sum = (self._sum + other._sum) % (1 << 128)

    def _see(self, first: datetime | None, last: datetime | None) -> None:
        if first is not None and last is not None:
            self._first = min(self._first or first, first)
            self._last = max(self._last or last, last)

    def listed(self, name: str, seen: datetime, reason: str) -> ListedSession:
        """Return the session under a name that may be kept."""
        first = self._first or datetime.fromtimestamp(0, UTC)
        return ListedSession(
            id=name,
            started=first,
            last=self._last or first,
            observations=sum(self._seen.values()),
            stamp=f"{len(self._seen)}:{self._sum:032x}",
            seen=seen,
            reason=reason,
        )


def list_session(client: LangfuseClient, session_id: str) -> Listing | None:
    """Return one session by all of its observations; None when the server has none of it.

    Errors as for ``Listing.between``.
    """
    found = Listing()
    rows = 0
    for rows, row in enumerate(listed_rows(client, session_id), 1):  # noqa: B007
        found.add(row)
    return found if rows else None

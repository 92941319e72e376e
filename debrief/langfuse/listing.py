"""What sessions a server has, and which of them changed, by their observations, unfetched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from debrief.langfuse.client import LangfuseClient, RequestRefusedError

_FIELDS = "core,basic,time"
_TRACES_AT_ONCE = 100


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


class _Seen:
    """What was seen of one session; in any order, and the same for the same observations."""

    def __init__(self) -> None:
        self.first: datetime | None = None
        self.last: datetime | None = None
        self.count = 0
        self.sum = 0

    def add(self, at: datetime | None, *parts: object) -> None:
        if at is not None:
            self.first = min(self.first or at, at)
            self.last = max(self.last or at, at)
        self.count += 1
        digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "replace")).digest()
        self.sum = (self.sum + int.from_bytes(digest[:16])) % (1 << 128)

    def listed(self, session_id: str) -> ListedSession:
        first = self.first or datetime.fromtimestamp(0, UTC)
        return ListedSession(
            id=session_id,
            started=first,
            last=self.last or first,
            observations=self.count,
            stamp=f"{self.count}:{self.sum:032x}",
        )


def list_sessions(
    client: LangfuseClient, begin: datetime, end: datetime
) -> dict[str, ListedSession]:
    """Return the sessions with observations that started in [begin, end), by id.

    By those observations alone: of a session that began before, ask ``list_session``.

    Raises:
        LangfuseAwayError: the server cannot be reached or stays busy.
        RequestRefusedError: it refuses the request.
    """
    first, last = timestamp(begin), timestamp(end)
    return _listed(
        client,
        {"fromStartTime": first, "toStartTime": last},
        {"fromTimestamp": first, "toTimestamp": last},
    )


def list_session(client: LangfuseClient, session_id: str) -> ListedSession | None:
    """Return one session by all of its observations; None when the server has none of it.

    Errors as for ``list_sessions``.
    """
    only = {"sessionId": session_id}
    return _listed(client, only, only).get(session_id)


def _listed(
    client: LangfuseClient, of_observations: Mapping[str, str], of_traces: Mapping[str, str]
) -> dict[str, ListedSession]:
    """Return sessions by their observations, or by their traces on servers too old for that."""
    try:
        return _gathered(client.observations(fields=_FIELDS, **of_observations), _note_observation)
    except RequestRefusedError as error:
        if error.status != 404:
            raise
    return _gathered(client.pages("/traces", limit=_TRACES_AT_ONCE, **of_traces), _note_trace)


def timestamp(moment: datetime) -> str:
    """Return a moment as the server's parameters are written."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(value: object) -> datetime | None:
    """Return the moment of a field, in UTC; None when it has none."""
    if not isinstance(value, str) or not value:
        return None
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _gathered(
    rows: Iterable[Mapping[str, Any]], note: Callable[[_Seen, Mapping[str, Any]], None]
) -> dict[str, ListedSession]:
    seen: dict[str, _Seen] = {}
    for row in rows:
        if session_id := str(row.get("sessionId") or ""):
            note(seen.setdefault(session_id, _Seen()), row)
    return {session_id: found.listed(session_id) for session_id, found in seen.items()}


def _note_observation(seen: _Seen, row: Mapping[str, Any]) -> None:
    changed = row.get("updatedAt") or row.get("endTime") or ""
    seen.add(moment_of(row.get("startTime")), row.get("id"), changed)


def _note_trace(seen: _Seen, row: Mapping[str, Any]) -> None:
    parts = len(row.get("observations") or ()), row.get("latency")
    seen.add(moment_of(row.get("timestamp")), row.get("id"), row.get("updatedAt"), *parts)

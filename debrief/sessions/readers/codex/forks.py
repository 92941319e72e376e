"""The part of a forked rollout that is a copy of another one's history."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from debrief.sessions.readers.jsonl import Record, string
from debrief.sessions.readers.moments import moment

_COPIED_WITHIN = timedelta(seconds=1)
"""A fork writes its copy at once; what a person does afterwards takes longer."""


class CopiedHistory:
    """Tells the copied records at a fork's beginning from its own.

    A fork's first ``session_meta`` is its own, and a second one, of the session that it was
    forked from, opens the copy. The copy's turns carry the ids that they had, which hold their
    time; where they do not, the copy ends with the burst in which it was written.
    """

    def __init__(self) -> None:
        self._id: str | None = None
        self._started: datetime | None = None
        self._inside = False

    def holds(self, record: Record) -> bool:
        """Return whether ``record`` is a copy; to be asked for every record, in order."""
        kind = record.get("type")
        payload = record.get("payload")
        if kind == "session_meta" and type(payload) is dict:
            if self._id is None:
                self._id = string(payload.get("id"))
                self._started = moment(record.get("timestamp")) or moment(payload.get("timestamp"))
                return False
            if string(payload.get("id")) != self._id:
                self._inside = True
                return True
            return self._inside
        if self._inside and self._is_own(payload, moment(record.get("timestamp"))):
            self._inside = False
        return self._inside

    def _is_own(self, payload: Any, at: datetime | None) -> bool:
        if self._started is None:
            return False
        begun = _time_in(string(payload.get("turn_id"))) if type(payload) is dict else None
        if begun is not None:
            return begun >= self._started
        return at is not None and at > self._started + _COPIED_WITHIN


def _time_in(identity: str) -> datetime | None:
    """Return the time in a UUID of version 7; None for any other id."""
    digits = identity.replace("-", "")
    if len(digits) != 32 or digits[12] != "7":
        return None
    try:
        return moment(int(digits[:12], 16))
    except ValueError:
        return None

"""Times in transcripts: ISO strings, seconds or milliseconds, or nothing that can be believed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from debrief.weeks import FIRST_WEEK

_EARLIEST = datetime.combine(date.fromisoformat(FIRST_WEEK), datetime.min.time(), UTC)
_LATEST = datetime(2099, 12, 31, tzinfo=UTC)
_SECONDS_OF_LATEST_YEAR = 4_102_444_800


def moment(value: Any) -> datetime | None:
    """Return a time of a transcript in UTC; naive times are UTC.

    Takes ISO 8601 text, or a number of seconds or milliseconds since 1970. Returns None for
    anything else, and for times before the first week that sessions are filed under or after
    2100: a clock that was not set must not open a partition of its own.
    """
    if type(value) is str:
        try:
            found = datetime.fromisoformat(value)
            if found.tzinfo is None:
                found = found.replace(tzinfo=UTC)
            elif found.tzinfo is not UTC:
                found = found.astimezone(UTC)
        except (ValueError, OverflowError):
            return None
    elif type(value) is int or type(value) is float:
        seconds = value / 1000 if value > _SECONDS_OF_LATEST_YEAR else value
        try:
            found = datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    else:
        return None
    return found if _EARLIEST <= found <= _LATEST else None


def changed_at(path: str) -> datetime:
    """Return when a file was last changed, the best guess where its records tell no time.

    Raises:
        OSError: the file is not there.
    """
    return moment_of_change(Path(path).stat().st_mtime_ns)


def moment_of_change(mtime_ns: int) -> datetime:
    """Return a file's time of change, in nanoseconds since 1970, as a time that has a week."""
    try:
        found = datetime.fromtimestamp(mtime_ns / 1e9, UTC)
    except (ValueError, OverflowError, OSError):
        return _EARLIEST
    return min(max(found, _EARLIEST), _LATEST)

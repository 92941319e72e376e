"""When a subscription's limit resets, read from the message in which a program says so."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

_LIMIT = re.compile(
    r"hit your [\w ’']{0,40}limit|(?:usage|session|weekly|plan|opus|5-hour) limit|limit reached"
    r"|exhausted your|quota (?:exceeded|will reset)|exceeded your (?:current )?quota"
    r"|usage_limit_reached|out of (?:extra )?(?:usage|credits)",
    re.IGNORECASE,
)
_STAMP = re.compile(r"\|(\d{10})\b")
_SPAN = re.compile(
    r"(?:after|in)\s+((?:\d+(?:\.\d+)?\s*"
    r"(?:days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|[dhms])(?![a-z])[\s,]*(?:and\s+)?)+)",
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*([dhms])", re.IGNORECASE)
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = re.compile(
    r"(?:resets?|reset|again)\s+(?:at\s+|on\s+)?"
    rf"(?:(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,?\s+(?P<year>\d{4}))?,?\s+(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>[ap])\.?m"
    r"(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)


def is_limit(words: str) -> bool:
    """Return whether words say that a plan is spent for now.

    >>> is_limit("You've hit your session limit · resets 3:50pm (Asia/Tokyo)")
    True
    """
    return _LIMIT.search(words) is not None


def seconds_until_reset(words: str, now: datetime) -> float | None:
    """Return how long it is until the moment that words name; None when they name none.

    Args:
        words: as a program says them: a time of day with or without a date and a zone, a span, or
            seconds since 1970.
        now: with a zone; that of times that name none.

    >>> now = datetime(2026, 11, 26, 12, 0, tzinfo=UTC)
    >>> seconds_until_reset("try again in 2 hours 5 minutes", now)
    7500.0
    >>> seconds_until_reset("try again at 12:16 PM.", now)
    960.0
    """
    if found := _STAMP.search(words):
        return max(0.0, int(found[1]) - now.timestamp())
    if found := _SPAN.search(words):
        parts = _PART.findall(found[1])
        return sum(float(number) * _SECONDS[unit.lower()] for number, unit in parts)
    if found := _CLOCK.search(words):
        moment = _moment(found, now)
        return None if moment is None else max(0.0, (moment - now).total_seconds())
    return None


def _moment(found: re.Match[str], now: datetime) -> datetime | None:
    here = now.astimezone(_zone(found["zone"]) or now.tzinfo)
    hour = int(found["hour"]) % 12 + 12 * (found["half"].lower() == "p")
    try:
        moment = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if not found["month"]:
            return moment if moment > here else moment + timedelta(days=1)
        month = _MONTHS.index(found["month"].lower()[:3]) + 1
        moment = moment.replace(
            year=int(found["year"] or here.year), month=month, day=int(found["day"])
        )
        # In December, "Jan 2" is of next year.
        is_past = not found["year"] and moment < here - timedelta(days=180)
        return moment.replace(year=here.year + 1) if is_past else moment
    except ValueError:
        return None


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):
        return UTC if name == "UTC" else None

"""Weeks: the unit in which sessions are read, judged and scored. Monday to Sunday, UTC."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

FIRST_WEEK = "2022-01-03"


def week_of(moment: datetime) -> str:
    """Return the week of ``moment`` as the ISO date of its Monday; naive times are UTC.

    >>> week_of(datetime(2026, 1, 4, 23, 59, tzinfo=UTC))
    '2025-12-29'
    """
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    day = moment.date()
    return (day - timedelta(days=day.weekday())).isoformat()


def is_week(key: str) -> bool:
    """Return whether ``key`` is the ISO date of a Monday."""
    try:
        day = date.fromisoformat(key)
    except ValueError:
        return False
    return day.weekday() == 0 and day.isoformat() == key


def week_after(week: str, weeks: int = 1) -> str:
    """Return the week that starts ``weeks`` weeks after ``week`` does."""
    return (date.fromisoformat(week) + timedelta(weeks=weeks)).isoformat()


def runs_of_weeks(weeks: Iterable[str]) -> list[tuple[str, str]]:
    """Group weeks into (first, last) ranges without gaps, in order.

    >>> runs_of_weeks(["2026-01-05", "2025-12-29", "2026-02-02"])
    [('2025-12-29', '2026-01-05'), ('2026-02-02', '2026-02-02')]
    """
    ranges: list[tuple[str, str]] = []
    for week in sorted(set(weeks)):
        if ranges and week_after(ranges[-1][1]) == week:
            ranges[-1] = (ranges[-1][0], week)
        else:
            ranges.append((week, week))
    return ranges

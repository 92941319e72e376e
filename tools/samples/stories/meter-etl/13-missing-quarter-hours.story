---
title: List missing quarter hours
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-22 10:02:51
version: 2.1.231
---
==> user
We settle days that have holes. New module meter_etl/gaps.py:

`gaps(readings, day) -> dict[str, list[datetime]]`: for each meter point that has any reading on that day, the quarter hours without one. Points without gaps aren't in the result. Readings that are not on a quarter hour don't fill a gap.

Tests: complete day, one hole, reading at :07, two points of which one is complete. Run them.
==> read meter_etl/model.py
==> +read tests/test_settle.py
==> say
I take `day` as a date in UTC, with 96 quarter hours from 00:00 to 23:45.
==> write meter_etl/gaps.py
"""Quarter hours for which nothing was delivered."""

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone

from meter_etl.model import Reading

QUARTER = timedelta(minutes=15)


def gaps(readings: Iterable[Reading], day: date) -> dict[str, list[datetime]]:
    """Return the missing quarter hours of ``day`` by meter point, where there are any."""
    seen: dict[str, set[datetime]] = {}
    for reading in readings:
        at = reading.read_at.astimezone(timezone.utc)
        if at.date() == day:
            seen.setdefault(reading.meter_point, set()).add(at)
    start = datetime.combine(day, time(), timezone.utc)
    quarters = [start + QUARTER * n for n in range(96)]
    missing = {point: [q for q in quarters if q not in at] for point, at in seen.items()}
    return {point: holes for point, holes in missing.items() if holes}
==> write tests/test_gaps.py
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal

from meter_etl.gaps import QUARTER, gaps
from meter_etl.model import Reading

DAY = date(2026, 10, 20)
START = datetime(2026, 10, 20, tzinfo=timezone.utc)
FULL = [START + QUARTER * n for n in range(96)]


def readings(point: str, times: list[datetime]) -> list[Reading]:
    return [Reading(point, "M1", at, Decimal("1"), "A") for at in times]


def test_a_complete_day_has_no_gaps():
    assert gaps(readings("DE1", FULL), DAY) == {}


def test_a_hole_is_named():
    assert gaps(readings("DE1", FULL[:40] + FULL[41:]), DAY) == {"DE1": [FULL[40]]}


def test_a_reading_beside_the_quarter_hour_fills_nothing():
    beside = [*FULL[1:], START + timedelta(minutes=7)]
    assert gaps(readings("DE1", beside), DAY) == {"DE1": [START]}


def test_only_points_with_gaps_are_listed():
    both = readings("DE1", FULL) + readings("DE2", FULL[:-1])
    assert gaps(both, DAY) == {"DE2": [FULL[-1]]}
==> tests pytest tests/test_gaps.py -q
ok tests/test_gaps.py 4
==> say
`gaps` is in meter_etl/gaps.py, with the four tests that you listed: `pytest tests/test_gaps.py -q`, "4 passed".
==> user
perfect
==> say
Thanks.

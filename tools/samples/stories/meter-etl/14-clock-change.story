---
title: Gaps on the day of the clock change
tool: claude-code
repository: meter-etl
prompts: v2
at: 2026-10-26 07:35:12
version: 2.1.234
---
==> user
gaps reports holes for every single meter yesterday. clock change?
==> read meter_etl/gaps.py
==> run python -c "from zoneinfo import ZoneInfo; from datetime import datetime as d; z = ZoneInfo('Europe/Berlin'); print(d(2026, 10, 25, tzinfo=z).utcoffset(), d(2026, 10, 26, tzinfo=z).utcoffset())"
2:00:00 1:00:00
==> say
Yes. `gaps` cuts the day in UTC, while the operators deliver a local day: from 22:00 UTC to 23:00 UTC yesterday, 100 quarter hours. I'll count from local midnight to the next local midnight, so that a day has 92, 96 or 100.
==> edit meter_etl/gaps.py
-    """Return the missing quarter hours of ``day`` by meter point, where there are any."""
-    seen: dict[str, set[datetime]] = {}
+    """Return the missing quarter hours of a local ``day`` by meter point, where there are any."""
+    start, end = (_midnight(day + timedelta(days=n)) for n in (0, 1))
+    seen: dict[str, set[datetime]] = {}
     for reading in readings:
         at = reading.read_at.astimezone(timezone.utc)
-        if at.date() == day:
+        if start <= at < end:
             seen.setdefault(reading.meter_point, set()).add(at)
-    start = datetime.combine(day, time(), timezone.utc)
-    quarters = [start + QUARTER * n for n in range(96)]
+    quarters = [start + QUARTER * n for n in range((end - start) // QUARTER)]
==> edit meter_etl/gaps.py
     return {point: holes for point, holes in missing.items() if holes}
+
+
+def _midnight(day: date) -> datetime:
+    return datetime.combine(day, time(), GRID_AREA).astimezone(timezone.utc)
==> edit meter_etl/gaps.py
 from meter_etl.model import Reading
+from meter_etl.parse import GRID_AREA
==> tests pytest tests/test_gaps.py -q
ok tests/test_gaps.py 0
bad tests/test_gaps.py::test_a_complete_day_has_no_gaps
>       assert gaps(readings("DE1", FULL), DAY) == {}
E       AssertionError: assert {'DE1': [datetime.datetime(2026, 10, 19, 22, 0, tzinfo=datetime.timezone.utc), ...]} == {}
bad tests/test_gaps.py::test_a_hole_is_named
>       assert gaps(readings("DE1", FULL[:40] + FULL[41:]), DAY) == {"DE1": [FULL[40]]}
E       AssertionError: assert {'DE1': [datetime.datetime(2026, 10, 19, 22, 0, tzinfo=datetime.timezone.utc), ...]} == {'DE1': [datetime.datetime(2026, 10, 20, 10, 0, tzinfo=datetime.timezone.utc)]}
bad tests/test_gaps.py::test_a_reading_beside_the_quarter_hour_fills_nothing
>       assert gaps(readings("DE1", beside), DAY) == {"DE1": [START]}
E       AssertionError: assert {'DE1': [datetime.datetime(2026, 10, 19, 22, 0, tzinfo=datetime.timezone.utc), ...]} == {'DE1': [datetime.datetime(2026, 10, 20, 0, 0, tzinfo=datetime.timezone.utc)]}
bad tests/test_gaps.py::test_only_points_with_gaps_are_listed
>       assert gaps(both, DAY) == {"DE2": [FULL[-1]]}
E       AssertionError: assert {'DE1': [datetime.datetime(2026, 10, 19, 22, 0, tzinfo=datetime.timezone.utc), ...]} == {'DE2': [datetime.datetime(2026, 10, 20, 23, 45, tzinfo=datetime.timezone.utc)]}
==> say
The tests build their day in UTC, which is what was wrong. They start at local midnight from now on, and the two days of the clock change get a test.
==> edit tests/test_gaps.py
-START = datetime(2026, 10, 20, tzinfo=timezone.utc)
+START = datetime(2026, 10, 19, 22, tzinfo=timezone.utc)
==> edit tests/test_gaps.py
-from meter_etl.gaps import QUARTER, gaps
+import pytest
+
+from meter_etl.gaps import QUARTER, gaps
==> edit tests/test_gaps.py
 def test_only_points_with_gaps_are_listed():
     both = readings("DE1", FULL) + readings("DE2", FULL[:-1])
     assert gaps(both, DAY) == {"DE2": [FULL[-1]]}
+
+
+@pytest.mark.parametrize(
+    ("day", "start", "quarters"),
+    [
+        (date(2026, 10, 25), datetime(2026, 10, 24, 22, tzinfo=timezone.utc), 100),
+        (date(2027, 3, 28), datetime(2027, 3, 27, 23, tzinfo=timezone.utc), 92),
+    ],
+)
+def test_a_day_of_the_clock_change_is_longer_or_shorter(day, start, quarters):
+    times = [start + QUARTER * n for n in range(quarters)]
+    assert gaps(readings("DE1", times), day) == {}
+    assert gaps(readings("DE1", times[:-1]), day) == {"DE1": [times[-1]]}
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_parse.py 4
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 1
ok tests/test_window.py 7
==> say
A day is a local day now: 100 quarter hours yesterday, 92 on 28 March, both tested. `pytest -q`: "38 passed". The reports of earlier days were cut two hours off as well; they would have to be made again.
==> user
that explains the tickets from September. rerunning them, thanks
==> say
You are welcome.

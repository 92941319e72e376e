---
title: Report of late readings by operator
tool: claude-code
repository: meter-etl
prompts: v3
model: claude-opus-4-5-20251101
at: 2026-11-03 08:30:40
version: 2.1.238
---
==> user
New module meter_etl/late.py: `late_by_region(rejects, readings)` counts E23 rejects per region (the region is the first two letters of the meter point) and gives the median lateness in hours beyond the window.

Returns list[RegionLateness(region, count, median_hours)], most late first, ties by region name. No pandas/polars in there. Edge cases I care about: no rejects → empty list; a region with one reading; rejects of other codes are ignored.

Then a CLI flag `--late-report FILE` that writes it as CSV (header: region,count,median_hours; hours with one decimal). Tests in tests/test_late.py for the three edge cases, the order, and the CSV via click's CliRunner. Run the whole suite.
==> say
Done means: five tests in tests/test_late.py (three edge cases, order, CSV) and a green suite. A reject only carries its row, so I'll look up the reading by row, counted from 1 in the list that `in_window` got.
==> read meter_etl/cli.py
==> +read meter_etl/window.py
==> +read meter_etl/model.py
==> todo
[>] Tests
[ ] late.py
[ ] Flag and CSV
[ ] Whole suite
==> write tests/test_late.py
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from click.testing import CliRunner

from meter_etl.cli import main
from meter_etl.late import RegionLateness, late_by_region
from meter_etl.model import Reading, Reject
from meter_etl.window import Windows

NOW = datetime(2026, 11, 3, 4, 0, tzinfo=timezone.utc)


def late(point: str, hours: int) -> Reading:
    return Reading(point, "M1", NOW - timedelta(days=3, hours=hours), Decimal("1"), "A")


def report(*readings: Reading, code: str = "E23") -> list[RegionLateness]:
    rejects = [Reject(row, code, "late") for row in range(1, len(readings) + 1)]
    return late_by_region(rejects, list(readings), NOW, Windows())


def test_no_rejects_no_report():
    assert late_by_region([], [], NOW, Windows()) == []


def test_a_region_with_one_reading():
    assert report(late("NO1", 5)) == [RegionLateness("NO", 1, 5.0)]


def test_other_codes_are_ignored():
    assert report(late("NO1", 5), code="E31") == []


def test_the_latest_region_comes_first_and_ties_go_by_name():
    found = report(late("SU1", 2), late("OS1", 2), late("NO1", 7), late("NO2", 9))
    assert [(one.region, one.count, one.median_hours) for one in found] == [
        ("NO", 2, 8.0),
        ("OS", 1, 2.0),
        ("SU", 1, 2.0),
    ]


def test_the_report_is_written_as_csv(tmp_path):
    source, target, csv = tmp_path / "in.csv", tmp_path / "out", tmp_path / "late.csv"
    source.write_text(
        "meter_point,device,read_at,register_kwh,quality\n"
        "NO1,M1,2020-01-01T00:00:00+00:00,1,A\n"
    )
    result = CliRunner().invoke(main, [str(source), str(target), "--late-report", str(csv)])
    assert result.exit_code == 0
    header, line = csv.read_text().splitlines()
    assert header == "region,count,median_hours"
    assert line.startswith("NO,1,")
    assert len(line.rsplit(".", 1)[1]) == 1
==> write meter_etl/late.py
"""Who delivers late, and by how much."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from meter_etl.model import Reading, Reject
from meter_etl.window import Windows


@dataclass(frozen=True)
class RegionLateness:
    region: str
    count: int
    median_hours: float
    """Beyond the window."""


def late_by_region(
    rejects: Iterable[Reject], readings: list[Reading], now: datetime, windows: Windows
) -> list[RegionLateness]:
    """Return the lateness of each region that has late readings, the latest first."""
    hours: dict[str, list[float]] = {}
    for reject in rejects:
        if reject.code != "E23":
            continue
        reading = readings[reject.row - 1]
        beyond = now - reading.read_at - windows.of(reading)
        hours.setdefault(reading.meter_point[:2], []).append(beyond.total_seconds() / 3600)
    found = [RegionLateness(region, len(all_), median(all_)) for region, all_ in hours.items()]
    return sorted(found, key=lambda one: (-one.median_hours, one.region))


def write_csv(found: list[RegionLateness], target) -> None:
    target.write("region,count,median_hours\n")
    for one in found:
        target.write(f"{one.region},{one.count},{one.median_hours:.1f}\n")
==> edit meter_etl/cli.py
 @click.option("--windows", default="3d,S=10d", show_default=True)
-def main(source: Path, target, windows: str) -> None:
+@click.option("--late-report", type=click.File("w"), help="Write late readings by region.")
+def main(source: Path, target, windows: str, late_report) -> None:
     readings, rejects = parse_file(source)
-    kept, late = in_window(dedupe(readings), datetime.now(timezone.utc), Windows.parse(windows))
+    now, allowed, unique = datetime.now(timezone.utc), Windows.parse(windows), dedupe(readings)
+    kept, late = in_window(unique, now, allowed)
+    if late_report:
+        write_csv(late_by_region(late, unique, now, allowed), late_report)
==> edit meter_etl/cli.py
+from meter_etl.late import late_by_region, write_csv
 from meter_etl.parse import parse_file
==> tests pytest -q
ok tests/test_gaps.py 6
ok tests/test_late.py 5
ok tests/test_parse.py 5
ok tests/test_publish.py 1
ok tests/test_reclassify.py 16
ok tests/test_rejects.py 3
ok tests/test_settle.py 5
ok tests/test_window.py 9
==> run ruff check meter_etl tests
All checks passed!
==> todo
[x] Tests
[x] late.py
[x] Flag and CSV
[x] Whole suite
==> say
- `late_by_region` in meter_etl/late.py; it takes the time and the windows as well, since lateness is counted beyond the window.
- Empty, single reading, other codes, order with ties: four tests.
- `--late-report FILE`: CSV with one decimal, tested through CliRunner.

`pytest -q`: "50 passed"; ruff: "All checks passed!".
==> user
nice, and yes the extra arguments make sense
==> say
Thanks.

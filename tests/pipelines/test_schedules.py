"""When runs start by themselves: the schedule and the sensor."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.partitions import LATE_WEEKS
from debrief.cli.run_options import parse_weeks
from debrief.errors import InputError
from debrief.keys import is_week, week_after, week_of
from debrief.lake import Lake
from debrief.sessions.scanning import Scan, ScanEntry
from pipelines.automation import (
    due_weeks,
    marks_of,
    new_sessions,
    request,
    weekly,
    weeks_at,
)
from resources import Stages
from tests.pipelines.test_run import WEEK, conversation, write

NOW = datetime(2026, 11, 16, 3, tzinfo=UTC)


@given(
    st.datetimes(datetime(2024, 1, 1), datetime(2030, 1, 1)).map(lambda t: t.replace(tzinfo=UTC))
)
def test_a_tick_takes_the_week_that_ended_and_the_four_before(tick: datetime) -> None:
    first, last = weeks_at(tick)
    assert is_week(first)
    assert week_after(first, LATE_WEEKS) == last
    assert week_after(last) == week_of(tick)


@pytest.mark.parametrize(
    ("tick", "ended"),
    [
        pytest.param("2026-11-16T00:00:00+00:00", "2026-11-09", id="the first moment of a week"),
        pytest.param("2026-11-15T23:59:59+00:00", "2026-11-02", id="the last moment of a week"),
        pytest.param("2026-11-16T00:30:00+02:00", "2026-11-02", id="Monday here, Sunday in UTC"),
        pytest.param("2026-11-15T22:30:00-05:00", "2026-11-09", id="Sunday there, Monday in UTC"),
        pytest.param("2027-01-04T03:00:00+00:00", "2026-12-28", id="across the year"),
    ],
)
def test_weeks_change_at_midnight_utc(tick: str, ended: str) -> None:
    assert weeks_at(datetime.fromisoformat(tick))[-1] == ended


def test_a_tick_that_is_late_takes_the_weeks_it_was_scheduled_for() -> None:
    with dg.build_schedule_context(scheduled_execution_time=NOW) as context:
        tick = weekly.evaluate_tick(context)
    assert tick.run_requests is not None
    (asked,) = tick.run_requests
    assert asked.run_key == "2026-11-09"
    assert range_of(asked) == weeks_at(NOW)


def range_of(request: dg.RunRequest) -> tuple[str, str]:
    start, end = (f"dagster/asset_partition_range_{name}" for name in ("start", "end"))
    return request.tags[start], request.tags[end]


def entry(path: str, week: str, minutes: float, size: int = 1) -> ScanEntry:
    written = NOW - timedelta(minutes=minutes)
    return ScanEntry(
        source="claude-code",
        path=path,
        size=size,
        mtime_ns=int(written.timestamp() * 1e9),
        session_id=path,
        started=written,
        week=week,
    )


def test_weeks_are_due_whose_sessions_rest_and_are_not_in_the_lake_or_asked_for_already() -> None:
    scan = Scan((entry("a", "2026-11-09", 60), entry("b", "2026-11-16", 2)))
    both = {"2026-11-09", "2026-11-16"}
    marks = due_weeks(scan, both, {}, NOW)
    assert set(marks) == {"2026-11-09"}, "what is still written to starts nothing"
    assert due_weeks(scan, {"2026-11-16"}, {}, NOW) == {}
    assert due_weeks(scan, both, marks, NOW) == {}
    grown = Scan((entry("a", "2026-11-09", 30, size=2),))
    assert due_weeks(grown, both, marks, NOW).keys() == {"2026-11-09"}


def test_the_same_sessions_give_the_same_run_key_and_others_another() -> None:
    asked = request({"2026-11-09": "x"}, None)
    assert asked.run_key == request({"2026-11-09": "x"}, None).run_key
    assert asked.run_key != request({"2026-11-09": "y"}, None).run_key
    assert asked.run_key != request({"2026-11-09": "x"}, "an earlier run's").run_key
    weeks = {"2026-11-09": "x", "2026-10-05": "y"}
    assert range_of(request(weeks, None)) == ("2026-10-05", "2026-11-09")


@pytest.mark.parametrize("cursor", [None, "", "not JSON", "[]", "3"])
def test_a_cursor_that_cannot_be_read_is_as_good_as_none(cursor: str | None) -> None:
    assert marks_of(cursor) == {}


def test_a_tick_finds_new_sessions_and_the_next_one_leaves_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sessions"
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_LAKE", str(tmp_path / "lake"))
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(folder))
    folder.mkdir()
    write(folder, "one.jsonl", conversation("one"))
    os.utime(folder / "one.jsonl", (1_760_000_000, 1_760_000_000))
    lake, sessions = {"url": str(tmp_path / "lake")}, {"folders": [str(folder)]}
    resources = {"stages": Stages(lake=lake, sessions=sessions)}

    def ticked(cursor: str | None) -> dg.SensorResult | dg.SkipReason:
        with (
            dg.DagsterInstance.ephemeral() as instance,
            dg.build_sensor_context(
                instance=instance, cursor=cursor, resources=resources
            ) as context,
        ):
            return new_sessions(context)  # type: ignore[return-value]

    first = ticked(None)
    assert isinstance(first, dg.SensorResult)
    (asked,) = first.run_requests or []
    assert range_of(asked) == (WEEK, WEEK)
    assert isinstance(ticked(first.cursor), dg.SkipReason)
    again = ticked(None)
    assert isinstance(again, dg.SensorResult)
    assert [request.run_key for request in again.run_requests or []] == [asked.run_key]
    assert Lake(str(tmp_path / "lake")).partitions("scan")


def test_schedule_and_sensor_are_off_until_somebody_switches_them_on() -> None:
    assert weekly.default_status is dg.DefaultScheduleStatus.STOPPED
    assert new_sessions.default_status is dg.DefaultSensorStatus.STOPPED


def test_weeks_are_mondays_or_ranges_of_them() -> None:
    assert parse_weeks(["2026-11-16", "2026-10-26..2026-11-09"]) == (
        "2026-10-26",
        "2026-11-02",
        "2026-11-09",
        "2026-11-16",
    )


@pytest.mark.parametrize(
    "text",
    ["2026-11-17", "soon", "", "..", "2026-11-16..2026-11-02", "2026-W47", "1999-01-04"],
)
def test_what_is_no_week_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match="--week"):
        parse_weeks([text])

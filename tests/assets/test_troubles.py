"""Troubles as Dagster makes them: by week, then over all weeks, and again only what changed."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from msgspec.structs import replace

from assets.troubles import trouble_events, troubles
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.troubles import finding
from debrief.troubles.model import ALL, EVENTS, TROUBLES, Trouble, TroubleEvent
from tests.assets.running import metadata, resources
from tests.signals.scenario import START, Story
from tests.troubles.scenario import day
from tests.troubles.test_failures import wrong_runner

WEEK, NEXT = week_of(START), week_of(replace(day(7, wrong_runner())).started)


def _run(lake: Lake, *weeks: str) -> dict[str, object]:
    with dg.DagsterInstance.ephemeral() as instance:
        for week in weeks:
            one = dg.materialize(
                [trouble_events], partition_key=week, instance=instance, resources=resources(lake)
            )
            assert one.success
        result = dg.materialize([troubles], instance=instance, resources=resources(lake))
        return metadata(result)


def test_what_recurs_over_weeks_is_a_trouble_and_nothing_is_made_twice(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", WEEK, [day(0, wrong_runner())], Session)
    assert _run(lake, WEEK)["dagster/row_count"] == 0
    lake.write("raw_sessions", NEXT, [day(7, wrong_runner()), day(8, wrong_runner())], Session)
    told = _run(lake, WEEK, NEXT)
    assert (told["dagster/row_count"], told["up_to_date"]) == (1, False)
    assert [len(list(lake.read(EVENTS, week, TroubleEvent))) for week in (WEEK, NEXT)] == [1, 2]
    (trouble,) = lake.read(TROUBLES, ALL, Trouble)
    assert trouble.sessions == ("day-8", "day-7", "day-0")
    assert _run(lake, WEEK, NEXT)["up_to_date"] is True
    fine = [day(number, Story().turn("Hello").say("Hello.")) for number in range(9, 46)]
    kept = [day(7, wrong_runner()), day(8, wrong_runner())]
    lake.write("raw_sessions", NEXT, [*kept, *fine], Session)
    assert _run(lake, WEEK, NEXT)["dagster/row_count"] == 0  # no longer one session in twelve


def test_a_lake_of_the_last_version_gets_its_troubles_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", WEEK, [day(0, wrong_runner()), day(1, wrong_runner())], Session)
    with monkeypatch.context() as last:
        last.setattr(finding, "VERSION", "3")
        _run(lake, WEEK)
    events = list(lake.read(EVENTS, WEEK, TroubleEvent))
    former = [replace(event, subject="as it was called then") for event in events]
    stamp = lake.stamp(EVENTS, WEEK)
    assert stamp is not None
    lake.write(EVENTS, WEEK, former, TroubleEvent, lambda: stamp.inputs)
    _run(lake, WEEK)
    assert list(lake.read(EVENTS, WEEK, TroubleEvent)) == events

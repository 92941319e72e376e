"""Friction as Dagster makes it: by week, over all weeks, and again only what changed."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from msgspec.structs import replace

from debrief.friction import failed_commands
from debrief.friction.advice import patch_for
from debrief.friction.schema import (
    ALL,
    EFFECTS,
    EVENTS,
    RECURRING,
    FrictionEvent,
    LineEffect,
    RecurringFriction,
)
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.snapshots.model import SNAPSHOTS, PromptSnapshotRow
from tests.assets.running import asset, metadata, resources
from tests.friction.scenario import day
from tests.friction.test_failures import wrong_runner
from tests.signals.scenario import START, Story

friction_events = asset("friction_events")
line_effects = asset("line_effects")
recurring_friction = asset("recurring_friction")

WEEK, NEXT = week_of(START), week_of(day(7, wrong_runner()).started)
BEFORE = [day(n, wrong_runner()) for n in range(8)]
AFTER = [day(n, Story().turn("Add it").run("bun run test", "3 passed")) for n in range(8, 16)]
OLD = "# Shop\n\nBe kind.\n"


def _run(lake: Lake, asset: str = "recurring_friction") -> dict[str, object]:
    with dg.DagsterInstance.ephemeral() as instance:
        for week in lake.partitions("raw_sessions"):
            one = dg.materialize(
                [friction_events], partition_key=week, instance=instance, resources=resources(lake)
            )
            assert one.success
        made = dg.materialize(
            [recurring_friction, line_effects], instance=instance, resources=resources(lake)
        )
        return metadata(made, asset=asset)


def test_what_two_weeks_have_recurs_and_nothing_is_made_twice(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", WEEK, [day(0, wrong_runner())], Session)
    assert _run(lake)["dagster/row_count"] == 0
    lake.write("raw_sessions", NEXT, [day(7, wrong_runner()), day(8, wrong_runner())], Session)
    told = _run(lake)
    assert (told["dagster/row_count"], told["up_to_date"]) == (1, False)
    assert [len(list(lake.read(EVENTS, week, FrictionEvent))) for week in (WEEK, NEXT)] == [1, 2]
    (friction,) = lake.read(RECURRING, ALL, RecurringFriction)
    assert friction.sessions == ("day-8", "day-7", "day-0")
    assert _run(lake)["up_to_date"] is True


def test_events_of_an_earlier_rule_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(str(tmp_path / "lake"))
    lake.write("raw_sessions", WEEK, [day(0, wrong_runner()), day(1, wrong_runner())], Session)
    with monkeypatch.context() as last:
        last.setattr(failed_commands, "VERSION", "3")
        _run(lake)
    events = list(lake.read(EVENTS, WEEK, FrictionEvent))
    former = [replace(event, what="as it was called then") for event in events]
    stamp = lake.stamp(EVENTS, WEEK)
    assert stamp is not None
    lake.write(EVENTS, WEEK, former, FrictionEvent, lambda: stamp.inputs)
    _run(lake)
    assert list(lake.read(EVENTS, WEEK, FrictionEvent)) == events


def _fill(lake: Lake, sessions: list[Session], prompts: dict[str, str]) -> None:
    for week in {week_of(session.started) for session in sessions}:
        own = [session for session in sessions if week_of(session.started) == week]
        lake.write("raw_sessions", week, own, Session)
        rows = [
            PromptSnapshotRow(session_id=session.id, origin="recorded", main=prompts[session.id])
            for session in own
        ]
        lake.write(SNAPSHOTS, week, rows, PromptSnapshotRow)


def test_a_line_that_comes_in_is_seen_to_have_gone_with_less_friction(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    everyone = [*BEFORE, *AFTER]
    _fill(lake, everyone, {session.id: OLD for session in everyone})
    assert _run(lake, "line_effects")["dagster/row_count"] == 0
    (friction,) = lake.read(RECURRING, ALL, RecurringFriction)
    added = [
        line[1:]
        for line in patch_for([friction], "CLAUDE.md", OLD).splitlines()
        if line.startswith("+") and not line.startswith("+++")
    ]
    new = OLD + "\n".join(added)
    assert "- Run `bun run test`, not `rtk bun run test`" in new
    _fill(lake, everyone, {session.id: OLD if session in BEFORE else new for session in everyone})
    assert _run(lake, "line_effects")["up_to_date"] is False
    (effect,) = lake.read(EFFECTS, ALL, LineEffect)
    assert (effect.affected_before, effect.sessions_before) == (8, 8)
    assert (effect.affected_after, effect.sessions_after) == (0, 8)
    assert (effect.outcome, effect.since) == ("fewer", AFTER[0].started)
    assert _run(lake, "line_effects")["up_to_date"] is True

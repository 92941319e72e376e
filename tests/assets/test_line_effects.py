"""A made-up repository: the line that its trouble gives comes into CLAUDE.md, and the trouble goes."""

from __future__ import annotations

from pathlib import Path

import dagster as dg

from assets.line_effects import line_effects
from assets.troubles import trouble_events, troubles
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.snapshots.model import SNAPSHOTS, PromptSnapshotRow
from debrief.troubles.advising import advised_lines, section
from debrief.troubles.model import ALL, EFFECTS, TROUBLES, LineEffect, Trouble
from tests.assets.running import metadata, resources
from tests.signals.scenario import Story
from tests.troubles.scenario import day
from tests.troubles.test_failures import wrong_runner

BEFORE = [day(n, wrong_runner()) for n in range(8)]
AFTER = [day(n, Story().turn("Add it").run("bun run test", "3 passed")) for n in range(8, 16)]
OLD = "# Shop\n\nBe kind.\n"


def _fill(lake: Lake, sessions: list[Session], prompts: dict[str, str]) -> None:
    for week in {week_of(session.started) for session in sessions}:
        own = [session for session in sessions if week_of(session.started) == week]
        lake.write("raw_sessions", week, own, Session)
        rows = [
            PromptSnapshotRow(session_id=session.id, origin="recorded", main=prompts[session.id])
            for session in own
        ]
        lake.write(SNAPSHOTS, week, rows, PromptSnapshotRow)


def _run(lake: Lake) -> dict[str, object]:
    with dg.DagsterInstance.ephemeral() as instance:
        for week in lake.partitions("raw_sessions"):
            dg.materialize(
                [trouble_events], partition_key=week, instance=instance, resources=resources(lake)
            )
        found = dg.materialize(
            [troubles, line_effects], instance=instance, resources=resources(lake)
        )
        return metadata(found, asset="line_effects")


def test_a_line_that_comes_in_is_seen_to_have_gone_with_fewer_troubles(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    everyone = [*BEFORE, *AFTER]
    _fill(lake, everyone, {session.id: OLD for session in everyone})
    assert _run(lake)["dagster/row_count"] == 0
    (trouble,) = lake.read(TROUBLES, ALL, Trouble)
    new = f"{OLD}\n{section(advised_lines([trouble]))}"
    assert "- Run `bun run test`, not `rtk bun run test`" in new
    _fill(lake, everyone, {session.id: OLD if session in BEFORE else new for session in everyone})
    assert _run(lake)["up_to_date"] is False
    (effect,) = lake.read(EFFECTS, ALL, LineEffect)
    assert (effect.troubled_before, effect.sessions_before) == (8, 8)
    assert (effect.troubled_after, effect.sessions_after) == (0, 8)
    assert (effect.outcome, effect.since) == ("fewer", AFTER[0].started)
    assert _run(lake)["up_to_date"] is True

"""The stage that runs sessions' checks: off, on, and with nothing to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from debrief.execution.store import EXECUTIONS
from debrief.keys import week_of
from tests.assets.running import asset, metadata, resources
from tests.execution.sandboxes import sandbox_or_skip
from tests.execution.test_executing import BROKEN, WHOLE, Machine

executed_outcomes = asset("executed_outcomes")


def made(machine: Machine, week: str) -> dict[str, Any]:
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [executed_outcomes],
            partition_key=week,
            instance=instance,
            resources=resources(machine.lake),
        )
    return metadata(result)


def test_it_runs_nothing_until_a_setting_names_the_repository_and_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path)
    session = machine.works("mended", BROKEN, WHOLE)
    machine.has(session)
    week = week_of(session.started)
    monkeypatch.setenv("DEBRIEF_HOME", str(machine.settings.home))
    monkeypatch.setenv("DEBRIEF_CLONES", str(machine.repo.folder))
    monkeypatch.delenv("DEBRIEF_EXECUTE", raising=False)
    off = made(machine, week)
    assert off["in_short"] == "off: DEBRIEF_EXECUTE names no repository whose commands may run"
    assert machine.lake.partitions(EXECUTIONS) == []
    assert off["off"] == off["in_short"], "reports leave such a stage out"
    sandbox_or_skip()

    monkeypatch.setenv("DEBRIEF_EXECUTE", "another, shop2")
    assert made(machine, week)["dagster/partition_row_count"] == 0
    monkeypatch.setenv("DEBRIEF_EXECUTE", "another, Shop")
    on = made(machine, week)
    assert on["in_short"] == "1 done, 0 not done, nothing said of 0"
    row = machine.row(session)
    assert row is not None
    assert row.value == "yes"
    assert made(machine, week)["up_to_date"]

    monkeypatch.delenv("DEBRIEF_EXECUTE")
    assert made(machine, week)["dagster/partition_row_count"] == 1
    assert machine.row(session) == row, "what was found stays when it is off"
    assert {pool for pool in [executed_outcomes.op.pool] if pool} == {"execution"}

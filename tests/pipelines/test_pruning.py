"""Old runs go; what tells of a partition's present state stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.runs.schema import RunsTable

from pipelines.pruning import delete_old_runs, prune, prune_runs

DAYS = dg.StaticPartitionsDefinition(["monday", "tuesday"])


@dg.asset(partitions_def=DAYS)
def made() -> None:
    """An asset with partitions."""


@dg.asset
def lonely() -> None:
    """An asset without."""


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as found:
        yield found


def run(instance: dg.DagsterInstance, day: str | None, age: float) -> str:
    """Materialize one partition in a run that is some days old."""
    assets = [made] if day else [lonely]
    result = dg.materialize(assets, instance=instance, partition_key=day)
    made_at = (datetime.now(UTC) - timedelta(days=age)).replace(tzinfo=None)
    with instance.run_storage.connect() as connection:  # type: ignore[attr-defined]
        change = RunsTable.update().where(RunsTable.c.run_id == result.run_id)
        connection.execute(change.values(create_timestamp=made_at))
    return result.run_id


def test_an_old_run_goes_with_its_events_once_a_newer_one_made_the_same(
    instance: dg.DagsterInstance,
) -> None:
    old, new = run(instance, "monday", 100), run(instance, "monday", 1)
    under_way = instance.create_run_for_job(prune_runs)
    assert prune(instance, 90, dry_run=True).runs == (old,)
    assert instance.get_run_by_id(old) is not None
    assert prune(instance, 90).runs == (old,)
    assert instance.get_run_by_id(old) is None
    assert instance.all_logs(old) == []
    assert instance.get_run_by_id(new) is not None
    assert prune(instance, 0).runs == ()
    assert instance.get_run_by_id(under_way.run_id) is not None


def test_a_run_that_a_partition_rests_on_stays_however_old(instance: dg.DagsterInstance) -> None:
    kept = [run(instance, "tuesday", 400), run(instance, None, 400)]
    run(instance, "monday", 100)
    run(instance, "monday", 1)
    done = prune(instance, 90)
    assert done.kept == 2
    assert all(instance.get_run_by_id(run_id) for run_id in kept)
    assert instance.get_materialized_partitions(made.key) == {"monday", "tuesday"}


def test_the_job_prunes_the_instance_that_it_runs_on(instance: dg.DagsterInstance) -> None:
    old = run(instance, "monday", 100)
    run(instance, "monday", 1)
    config = {"ops": {delete_old_runs.name: {"config": {"days": 90.0}}}}
    assert prune_runs.execute_in_process(instance=instance, run_config=config).success
    assert instance.get_run_by_id(old) is None

"""Scattered pairs of task and fingerprint, many to a run."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assets.many_pairs import COUNT_TAG, MOST, config_of, pair_key, runs_over
from assets.partitions import add_pairs
from assets.training import no_secret_in_training_sets, training_lines_valid, training_sets
from debrief.lake import Lake
from debrief.settings import load_settings
from debrief.snapshots.model import SessionMetadataRow
from debrief.state.opening import open_state
from debrief.state.processes import this_process
from debrief.training.pairs import observed_pairs
from debrief.training.store import training_path
from debrief.weeks import week_of
from pipelines.instance import open_instance
from pipelines.ranges import tags_of
from resources.lake import LakeResource
from tests.pipelines.conftest import Home
from tests.training.lakes import lake_of
from tests.training.scenario import metadata
from tests.training.test_store import team

NAMES = st.sampled_from([f"n{number}" for number in range(30)])


@given(st.sets(st.tuples(NAMES, NAMES)))
def test_runs_take_each_pair_once_and_no_empty_cell(pairs: set[tuple[str, str]]) -> None:
    keys = [key for run in runs_over(pairs) for key in run]
    assert sorted(keys) == sorted(pair_key(*pair) for pair in pairs)


def test_two_thousand_scattered_pairs_are_ten_runs() -> None:
    cells = [
        (f"task-{task}", f"{prompt:08x}-7210ef0e") for task in range(100) for prompt in range(100)
    ]
    runs = list(runs_over(random.Random(1).sample(cells, 2_000)))
    assert [len(run) for run in runs] == [MOST] * 10


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose sessions lie on the diagonal of five tasks and five fingerprints."""
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("DEBRIEF_MODEL", "DEBRIEF_OFFLINE", "DEBRIEF_MIN_AGREEMENT"):
        monkeypatch.delenv(name, raising=False)
    sessions = team(10)
    lake = lake_of(tmp_path / "lake", sessions)
    for week in lake.partitions("raw_sessions"):
        rows = [
            metadata(each, task=f"task-{n % 5}", prompt_fingerprint=f"{n % 5:08x}")
            for n, each in enumerate(sessions)
            if week_of(each.started) == week
        ]
        lake.write("session_metadata", week, rows, SessionMetadataRow)
    return lake


def test_a_run_makes_records_and_checks_all_its_pairs(lake: Lake) -> None:
    pairs = sorted(observed_pairs(lake))
    (keys,) = runs_over([*pairs, ("task-0", pairs[-1][1])])
    with dg.DagsterInstance.ephemeral() as instance:
        add_pairs(instance, pairs)
        result = dg.materialize(
            [training_sets, training_lines_valid, no_secret_in_training_sets],
            instance=instance,
            tags=tags_of((keys[0], keys[0]), keys),
            run_config=config_of("training_sets", keys),
            resources={"lake": LakeResource(url=lake.url)},
        )
        made = {pair_key(*pair) for pair in pairs}
        assert len(made) == 5
        assert instance.get_materialized_partitions(training_sets.key) == made
        versions = {_version(instance, key) for key in made}
        assert versions == {training_sets.code_versions_by_key[training_sets.key]}
    assert all(lake.read_bytes(training_path(*pair)) for pair in pairs)
    lines = [check.metadata.get("lines") for check in result.get_asset_check_evaluations()]
    assert dg.MetadataValue.int(10) in lines
    told = [event.metadata["in_short"].value for event in _materializations(result)]
    assert told == ["2 samples of 2 sessions"] * 5


def _version(instance: dg.DagsterInstance, key: str) -> str | None:
    event = instance.get_latest_data_version_record(training_sets.key, partition_key=key)
    assert event is not None
    assert event.asset_materialization is not None
    return (event.asset_materialization.tags or {}).get("dagster/code_version")


def _materializations(result: Any) -> list[dg.AssetMaterialization]:
    found: list[dg.AssetMaterialization] = result.asset_materializations_for_node("training_sets")
    return found


def test_an_empty_cell_of_a_range_says_that_it_is_one(lake: Lake) -> None:
    pairs = sorted(observed_pairs(lake))
    (task, _), (_, fingerprint) = pairs[0], pairs[1]
    with dg.DagsterInstance.ephemeral() as instance:
        add_pairs(instance, pairs)
        result = dg.materialize(
            [training_sets],
            instance=instance,
            partition_key=pair_key(task, fingerprint),
            resources={"lake": LakeResource(url=lake.url)},
        )
    (shown,) = [event.metadata for event in _materializations(result)]
    assert shown["in_short"].value == "an empty cell: no session has this pair"
    assert lake.read_bytes(training_path(task, fingerprint)) is None


def test_what_a_killed_run_worked_on_is_taken_over(lake: Lake) -> None:
    pairs = sorted(observed_pairs(lake))
    keys = [pair_key(*pair) for pair in pairs]
    gone = replace(this_process(), number=2**22 + 1).encoded()
    held = f"training_sets {keys[1]} of {lake.url}"
    assert open_state(load_settings()).take(held, run="killed", token="1", process=gone)
    with dg.DagsterInstance.ephemeral() as instance:
        add_pairs(instance, pairs)
        result = dg.materialize(
            [training_sets],
            instance=instance,
            tags=tags_of((keys[0], keys[0]), keys),
            run_config=config_of("training_sets", keys),
            resources={"lake": LakeResource(url=lake.url)},
        )
        told = " ".join(entry.user_message for entry in instance.all_logs(result.run_id))
    assert f"takes over {held} from run killed" in told
    assert len(_materializations(result)) == len(pairs)


def test_a_backfill_of_scattered_pairs_is_one_run(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Home(tmp_path / "home").typed(
        "backfill", "--stage", "training_sets", "--offline", "--lake", lake.url
    )
    assert said.code == 0, said.all
    pairs = sorted(pair_key(*pair) for pair in observed_pairs(lake))
    assert f"training_sets: 5 pairs from {pairs[0]} to {pairs[-1]}" in said.all
    monkeypatch.setenv("DEBRIEF_LAKE", lake.url)
    with open_instance(load_settings()) as instance:
        (run,) = instance.get_runs()
        assert run.tags[COUNT_TAG] == "5"
        assert instance.get_materialized_partitions(training_sets.key) == set(pairs)
    again = Home(tmp_path / "home").typed(
        "backfill", "--stage", "training_sets", "--offline", "--lake", lake.url, "--task", "task-3"
    )
    assert "training_sets: 00000003-" in again.all
    assert "(unchanged)" in again.all

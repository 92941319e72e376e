"""What Dagster loads: complete, described, and found in the same place from everywhere."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
import yaml
from msgspec.structs import replace

from assets.partitions import PAIRS, WEEKS
from debrief.stages.catalog import all_stages, by_name, place_of
from pipelines.definitions import defs

TOP = Path(__file__).parents[2]
PARTITIONS = {
    "raw_sessions": WEEKS,
    "session_signals": WEEKS,
    "friction_events": WEEKS,
    "recurring_friction": None,
    "line_effects": None,
    "executed_outcomes": WEEKS,
    "labels": None,
    "prompt_snapshots": WEEKS,
    "session_metadata": WEEKS,
    "judge_evaluations": WEEKS,
    "session_scores": WEEKS,
    "langfuse_scores": WEEKS,
    "extracted_rubrics": WEEKS,
    "rubrics": None,
    "rubric_evaluations": WEEKS,
    "training_sets": PAIRS,
    "prompt_candidates": PAIRS,
    "fingerprint_leaderboard": None,
    "weekly_report": WEEKS,
}


def test_everything_loads_as_the_server_loads_it() -> None:
    defs.get_repository_def().load_all_definitions()


@pytest.mark.parametrize("name", sorted(PARTITIONS))
def test_an_asset_has_its_partitions_and_says_what_it_is(name: str) -> None:
    node = defs.resolve_asset_graph().get(dg.AssetKey(name))
    assert node.partitions_def == PARTITIONS[name]
    assert node.description
    assert node.code_version
    assert node.group_name
    assert node.group_name != "default"
    assert node.owners
    assert node.kinds


def test_each_stage_is_an_asset_and_each_asset_a_stage() -> None:
    keys = defs.resolve_asset_graph().materializable_asset_keys
    assert {key.to_user_string() for key in keys} == {stage.name for stage in all_stages()}
    assert set(PARTITIONS) <= {stage.name for stage in all_stages()}


def test_two_stages_of_one_name_are_refused() -> None:
    first, *_ = all_stages()
    assert by_name([first, first]) == {first.name: first}
    with pytest.raises(ValueError, match=f"two stages have the name {first.name}"):
        by_name([first, replace(first, doc="A copy.")])


def test_a_stage_comes_after_those_that_it_reads() -> None:
    graph = defs.resolve_asset_graph()
    names = [stage.name for stage in all_stages()]
    for number, name in enumerate(names):
        later = {dg.AssetKey(each) for each in names[number + 1 :]}
        assert not later & graph.get_ancestor_asset_keys(dg.AssetKey(name)), name
    assert place_of("no stage") == len(names)


def test_every_asset_but_the_snapshots_is_guarded_or_a_report() -> None:
    guarded = {
        key.asset_key.to_user_string() for key in defs.resolve_asset_graph().asset_check_keys
    }
    assert guarded >= {
        "extracted_rubrics",
        "raw_sessions",
        "labels",
        "judge_evaluations",
        "session_scores",
        "langfuse_scores",
        "rubric_evaluations",
        "training_sets",
    }


def test_weeks_start_on_monday_and_the_one_under_way_is_a_partition() -> None:
    keys = WEEKS.get_partition_keys(current_time=datetime(2026, 11, 18, tzinfo=UTC))
    assert keys[-1] == "2026-11-16"
    assert all(datetime.fromisoformat(key).weekday() == 0 for key in keys)


def test_every_pointer_names_the_same_definitions() -> None:
    workspace = yaml.safe_load((TOP / "workspace.yaml").read_text())
    tools = tomllib.loads((TOP / "pyproject.toml").read_text())["tool"]
    assert {
        workspace["load_from"][0]["python_module"]["module_name"],
        tools["dagster"]["module_name"],
        tools["dg"]["project"]["code_location_target_module"],
    } == {"pipelines.definitions"}

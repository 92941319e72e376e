"""What follows by itself: the conditions ticked on an ephemeral instance, as the daemon would."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import FINGERPRINT, TASK, add_pairs
from assets.scoring import session_scores
from debrief.lake import Lake
from debrief.snapshots.model import SessionMetadataRow
from pipelines.definitions import defs
from pipelines.sensors import following
from tests.pipelines.rows import judgement, metadata

WEEK, MISSING, LATER = "2026-10-05", "2026-10-12", "2026-10-19"
PAIR = ("late-readings", "aaaaaaaa-11111111")
OTHER = ("keyboard", "bbbbbbbb-11111111")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    monkeypatch.setenv("DEBRIEF_LAKE", str(tmp_path / "lake"))
    return Lake(str(tmp_path / "lake"))


def observe(
    lake: Lake, instance: dg.DagsterInstance, *pairs: tuple[str, str], week: str = WEEK
) -> None:
    from debrief.judging.model import JudgeEvaluation

    rows: list[SessionMetadataRow] = []
    judged: list[JudgeEvaluation] = []
    for number, (task, fingerprint) in enumerate(pairs):
        prompt, _, mark = fingerprint.partition("-")
        rows.append(metadata(f"s{number}", task=task, prompt_fingerprint=prompt))
        judged.append(judgement(f"s{number}", eval_fingerprint=mark))
    lake.write("session_metadata", week, rows, SessionMetadataRow)
    lake.write("judge_evaluations", week, judged, JudgeEvaluation)
    add_pairs(instance, pairs)


def scored(instance: dg.DagsterInstance, week: str) -> None:
    instance.report_runless_asset_event(dg.AssetMaterialization(session_scores.key, partition=week))


def written(instance: dg.DagsterInstance, pair: tuple[str, str]) -> None:
    key = dg.MultiPartitionKey({TASK: pair[0], FINGERPRINT: pair[1]})
    instance.report_runless_asset_event(
        dg.AssetMaterialization(dg.AssetKey("training_sets"), partition=key)
    )


def asked_for(result: dg.EvaluateAutomationConditionsResult) -> set[tuple[str, str]]:
    keys = result.get_requested_partitions(dg.AssetKey("training_sets"))
    found = set()
    for key in keys:
        assert key is not None
        fingerprint, _, task = key.partition("|")
        found.add((task, fingerprint))
    return found


def tick(
    instance: dg.DagsterInstance, before: dg.EvaluateAutomationConditionsResult | None = None
) -> dg.EvaluateAutomationConditionsResult:
    return dg.evaluate_automation_conditions(
        defs,
        instance=instance,
        asset_selection=dg.AssetSelection.assets("training_sets", "fingerprint_leaderboard"),
        cursor=before.cursor if before else None,
    )


def test_a_scored_week_brings_its_pairs_and_no_empty_cell_though_other_weeks_are_missing(
    lake: Lake,
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        observe(lake, instance, PAIR, OTHER)
        first = tick(instance)
        scored(instance, WEEK)
        scored(instance, LATER)
        second = tick(instance, first)
        assert instance.get_materialized_partitions(session_scores.key) == {WEEK, LATER}
        assert asked_for(first) | asked_for(second) == {PAIR, OTHER}
        assert second.get_num_requested(dg.AssetKey("fingerprint_leaderboard")) == 1


def test_a_training_set_that_was_made_is_left_until_its_samples_change(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        observe(lake, instance, PAIR)
        first = tick(instance)
        scored(instance, WEEK)
        second = tick(instance, first)
        written(instance, PAIR)
        third = tick(instance, second)
        assert asked_for(third) == set()
        scored(instance, WEEK)
        assert asked_for(tick(instance, third)) == {PAIR}


def test_a_week_brings_the_pairs_of_its_own_sessions_alone(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        observe(lake, instance, PAIR)
        observe(lake, instance, OTHER, week=LATER)
        first = tick(instance)
        scored(instance, WEEK)
        scored(instance, LATER)
        second = tick(instance, first)
        assert asked_for(second) == {PAIR, OTHER}
        written(instance, PAIR)
        written(instance, OTHER)
        third = tick(instance, second)
        assert asked_for(third) == set()
        scored(instance, LATER)
        fourth = tick(instance, third)
        assert asked_for(fourth) == {OTHER}
        assert fourth.get_num_requested(dg.AssetKey("fingerprint_leaderboard")) == 1


def test_without_a_session_nothing_is_asked_for(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        add_pairs(instance, [PAIR])
        scored(instance, WEEK)
        assert asked_for(tick(instance)) == set()


def test_the_sensor_is_off_until_somebody_switches_it_on() -> None:
    assert following.default_status is dg.DefaultSensorStatus.STOPPED
    assert defs.resolve_sensor_def("following") is not None

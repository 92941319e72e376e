"""Metrics of a lake: what they say, and that they are read again only when something changed."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.training.store import TrainingSetRow
from pipelines.metrics import WEEKS_SHOWN, LakeMetrics
from tests.grown import fill_lake

LAST = "2026-11-09"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path))
    fill_lake(found, LAST, weeks=10, sessions=30)
    return found


def metrics(lake: Lake) -> dict[tuple[str, ...], float]:
    return dict(LakeMetrics(lake).collect())


def evaluation(number: int, **fields: object) -> JudgeEvaluation:
    plain = JudgeEvaluation(
        session_id=f"s{number}",
        session_digest="",
        started=dt.datetime(2026, 11, 9, tzinfo=dt.UTC),
        judge="j",
        weight=1.0,
        model="m",
        status="ok",
        eval_fingerprint="0" * 8,
    )
    return replace(plain, **fields)


def test_sessions_rows_tokens_and_costs_add_up(lake: Lake) -> None:
    found = metrics(lake)
    assert found["debrief_sessions", "claude-code"] == 10
    assert found["debrief_rows", "judge_evaluations", "ok"] == 30
    assert found["debrief_tokens", "session_scores", "input"] == 30 * 20_000
    assert found["debrief_cost_usd", "judge_evaluations"] == pytest.approx(30 * 0.004)
    assert found["debrief_week_sessions", LAST] == 3
    assert found["debrief_week_cost_usd", "session_scores", LAST] == pytest.approx(0.03)


def test_only_the_newest_weeks_are_told_of_one_by_one(lake: Lake) -> None:
    weeks = {key[1] for key in metrics(lake) if key[0] == "debrief_week_sessions"}
    assert len(weeks) == WEEKS_SHOWN
    assert max(weeks) == LAST


def test_failures_and_unknown_prices_are_counted_and_not_taken_for_nothing(lake: Lake) -> None:
    rows = [
        evaluation(1, cost_usd=0.5, input_tokens=9),
        evaluation(2, cost_usd=None, input_tokens=9),
        evaluation(3, status="failed", failure="no answer"),
        evaluation(4, cost_usd=None),
    ]
    lake.write("judge_evaluations", LAST, rows, JudgeEvaluation)
    found = metrics(lake)
    assert found["debrief_week_rows", "judge_evaluations", LAST, "failed"] == 1
    assert found["debrief_week_cost_usd", "judge_evaluations", LAST] == 0.5
    assert found["debrief_cost_unknown_rows", "judge_evaluations"] == 1


def test_what_changes_is_seen_by_the_next_look(lake: Lake) -> None:
    source = LakeMetrics(lake)
    before = dict(source.collect())
    lake.write("judge_evaluations", LAST, [evaluation(1)], JudgeEvaluation)
    after = dict(source.collect())
    assert before["debrief_rows", "judge_evaluations", "ok"] == 30
    assert after["debrief_rows", "judge_evaluations", "ok"] == 28
    assert after["debrief_sessions", "droid"] == before["debrief_sessions", "droid"]


def test_a_partition_that_did_not_change_is_not_read_again(lake: Lake, tmp_path: Path) -> None:
    class Counted(Lake):
        reads = 0

        def read(self, *arguments, **options):  # type: ignore[no-untyped-def]
            Counted.reads += 1
            return super().read(*arguments, **options)

    source = LakeMetrics(Counted(str(tmp_path)))
    dict(source.collect())
    first = Counted.reads
    dict(source.collect())
    assert first == 30
    assert Counted.reads == first


def test_training_sets_and_their_samples(lake: Lake) -> None:
    row = TrainingSetRow(
        task="t", fingerprint="f", considered=9, samples=5, train=4, eval=1, tokens=10,
        lines_digest="", card_digest="",
    )  # fmt: skip
    for number in range(2):
        lake.write("training_index", f"t{number}.f", [row], TrainingSetRow)
    found = metrics(lake)
    assert (found["debrief_training_sets",], found["debrief_training_samples",]) == (2, 10)


def test_an_empty_lake_has_metrics_too(tmp_path: Path) -> None:
    found = metrics(Lake(str(tmp_path / "none")))
    assert found["debrief_training_sets",] == 0
    assert found["debrief_cost_usd", "session_scores"] == 0

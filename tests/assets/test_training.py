"""The training stage on Dagster: selection at launch, cards, checks, and candidates on request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from msgspec.structs import replace

from assets.partitions import add_pairs, pair_key
from assets.reports import fingerprint_leaderboard
from assets.training import (
    no_secret_in_training_sets,
    prompt_candidates,
    training_lines_valid,
    training_sets,
)
from debrief.lake import Lake
from debrief.stages.configuration import EvaluatorChoice
from debrief.training.candidates import CandidateRow
from debrief.training.manifest import counts_in
from debrief.training.model import training_path
from debrief.training.publishing.publish import ExportOptions, publish
from tests.assets.running import resources, shown_as
from tests.models.openai_server import OpenAIServer
from tests.redaction.synthetic import ALNUM, Maker
from tests.training.lakes import TASK, add, lake_of
from tests.training.scenario import FINGERPRINT
from tests.training.test_optimisation import HABIT, reply
from tests.training.test_store import team

KEY = pair_key(TASK, FINGERPRINT)


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    for name in ("DEBRIEF_MODEL", "DEBRIEF_NO_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return lake_of(tmp_path / "lake", team(10), {"s03": 0.2, "s04": 0.9})


def run(lake: Lake, *assets: Any, config: Any = None, **more: Any) -> Any:
    with dg.DagsterInstance.ephemeral() as instance:
        add_pairs(instance, [(TASK, FINGERPRINT)])
        return dg.materialize(
            list(assets),
            instance=instance,
            partition_key=KEY if assets[0] is not fingerprint_leaderboard else None,
            resources=resources(lake, **more),
            run_config={"ops": config} if config else None,
            raise_on_error=False,
        )


def metadata(result: Any, asset: str = "training_sets") -> Any:
    (event,) = result.asset_materializations_for_node(asset)
    return {name: shown_as(value) for name, value in event.metadata.items()}


def card_in(lake: Lake) -> str:
    return (lake.read_bytes(training_path(TASK, FINGERPRINT, ".card.md")) or b"").decode()


def test_a_pair_s_files_are_written_shown_and_checked(lake: Lake) -> None:
    result = run(lake, training_sets, training_lines_valid, no_secret_in_training_sets)
    assert result.success
    assert all(check.passed for check in result.get_asset_check_evaluations())
    shown = metadata(result)
    assert shown["dagster/partition_row_count"] == 10
    assert shown["train"] + shown["eval"] == 10
    assert lake.read_bytes(training_path(TASK, FINGERPRINT))
    assert "card" not in shown  # it names sessions, and Dagster keeps what it is shown
    assert card_in(lake).startswith("# Training set")


def _with_an_unseen_secret(monkeypatch: pytest.MonkeyPatch, folder: Path) -> tuple[Lake, str]:
    """Return a lake of ten sessions, one with a secret, and switch the first search off."""
    monkeypatch.setenv("DEBRIEF_HOME", str(folder / "home"))
    monkeypatch.setattr("debrief.training.samples.contains_secret", lambda data: [])
    secret = Maker(51).of(ALNUM, 36)
    first, *others = team(10)
    turns = (replace(first.turns[0], prompt=f"then it said {secret} and went on"), *first.turns[1:])
    return lake_of(folder / "lake", [replace(first, turns=turns), *others]), secret


def test_a_line_with_a_secret_that_redaction_does_not_see_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, secret = _with_an_unseen_secret(monkeypatch, tmp_path)
    result = run(lake, training_sets, no_secret_in_training_sets)
    (check,) = result.get_asset_check_evaluations()
    assert check.passed
    assert "a person should look at it" in metadata(result)["left_out"]
    publish(lake, str(tmp_path / "out"), ExportOptions(form="messages"))
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    stored = [data for data in files if data.startswith(b'{"messages"')]
    assert sum(len(data.splitlines()) for data in stored) == 2 * 9
    assert not any(secret.encode() in data for data in stored)


def test_a_secret_in_a_finished_set_blocks_what_is_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lake, secret = _with_an_unseen_secret(monkeypatch, tmp_path)
    monkeypatch.setattr("debrief.training.store.held_for", lambda tokens, decided: "")
    result = run(lake, training_sets, no_secret_in_training_sets)
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert not result.success
    name = training_path(TASK, FINGERPRINT)
    rows = (lake.read_bytes(name) or b"").splitlines()
    number = next(n for n, row in enumerate(rows, 1) if secret.encode() in row)
    told = f"{name}, line {number}: holds letters and digits made by chance"
    assert told in capfd.readouterr().err


def test_what_is_chosen_at_launch_or_by_a_setting_is_left_out_by_reason(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_TRAINING_MIN_OVERALL_QUALITY", "0.5")
    config: Any = {"training_sets": {"config": {"max_per_repository": 2}}}
    shown = metadata(run(lake, training_sets, config=config))
    assert "overall quality below 0.5" in shown["left_out"]
    assert "over the cap of 2 for its repository" in shown["left_out"]
    assert shown["dagster/partition_row_count"] == 6
    config = {"training_sets": {"config": {"min_overall_quality": 0.0}}}
    assert metadata(run(lake, training_sets, config=config))["dagster/partition_row_count"] == 10


def test_a_choice_that_makes_no_sense_is_told(lake: Lake) -> None:
    result = run(lake, training_sets, config={"training_sets": {"config": {"status": "done"}}})
    assert not result.success
    (failure,) = result.get_step_failure_events()
    assert "status" in str(failure.step_failure_data.error)


def test_without_a_review_each_set_says_how_many_sessions_nobody_reviewed(lake: Lake) -> None:
    assert metadata(run(lake, training_sets))["not_reviewed"] == 0
    for week in lake.partitions("session_scores"):
        lake.drop("session_scores", week)
    shown = metadata(run(lake, training_sets))
    assert (shown["dagster/partition_row_count"], shown["not_reviewed"]) == (10, 10)
    assert shown["in_short"] == "10 samples of 10 sessions, 10 not reviewed"
    assert counts_in(lake).unreviewed == 10


def test_the_comparison_is_written_shown_and_kept(lake: Lake) -> None:
    shown = metadata(run(lake, fingerprint_leaderboard), "fingerprint_leaderboard")
    assert "Nothing to compare: all sessions are of opus." in shown["leaderboard"]
    page = lake.read_bytes("reports/fingerprint_leaderboard.md")
    assert page is not None
    assert "| opus | 10 | 10 | 10 | 1.00 (0.72 to 1.00) |" in page.decode()
    again = metadata(run(lake, fingerprint_leaderboard), "fingerprint_leaderboard")
    assert (shown["made_now"], again["made_now"]) == (1, 0)


TRIALS = {"prompt_candidates": {"config": {"trials": 20}}}


def test_candidates_without_a_model_say_that_they_need_one(lake: Lake) -> None:
    result = run(lake, prompt_candidates, config=TRIALS, evaluator=EvaluatorChoice(no_model=True))
    assert not result.success
    (failure,) = result.get_step_failure_events()
    assert "needs a language model" in str(failure.step_failure_data.error)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer(reply) as running:
        monkeypatch.setenv("DEBRIEF_MODEL_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
        yield running


def test_candidates_are_proposed_once_and_shown_before_and_after(
    lake: Lake, server: OpenAIServer
) -> None:
    evaluator = EvaluatorChoice(model="openai/tiny")
    add(lake, team(30))
    chosen = {"training_sets": {"config": {"eval_share": 0.5}}}
    assert run(lake, training_sets, config=chosen).success
    shown = metadata(
        run(lake, prompt_candidates, config=TRIALS, evaluator=evaluator), "prompt_candidates"
    )
    assert shown["outcome"] == "proposed"
    assert (shown["before"], shown["after"]) == pytest.approx((0.3, 0.9))
    assert "Better on the held-out samples" in shown["report"]
    (row,) = lake.read("prompt_candidates", f"{TASK}/{FINGERPRINT}", CandidateRow)
    place = f"prompts/candidates/{TASK}/{FINGERPRINT}/{row.candidate}/main.md"
    assert HABIT.encode() in (lake.read_bytes(place) or b"")
    asked = len(server.calls)
    assert run(lake, prompt_candidates, config=TRIALS, evaluator=evaluator).success
    assert len(server.calls) == asked


def test_nothing_is_tried_unless_the_run_says_how_often(lake: Lake, server: OpenAIServer) -> None:
    chosen = {"training_sets": {"config": {"eval_share": 0.5}}}
    add(lake, team(30))
    assert run(lake, training_sets, config=chosen).success
    result = run(lake, prompt_candidates, evaluator=EvaluatorChoice(model="openai/tiny"))
    assert not result.success
    (failure,) = result.get_step_failure_events()
    assert "only when the run's configuration gives `trials`" in str(
        failure.step_failure_data.error
    )
    assert server.calls == []


def test_a_pair_that_gives_no_candidate_says_why(lake: Lake, server: OpenAIServer) -> None:
    chosen = {"training_sets": {"config": {"eval_share": 0.0}}}
    assert run(lake, training_sets, config=chosen).success
    evaluator = EvaluatorChoice(model="openai/tiny")
    result = run(lake, prompt_candidates, config=TRIALS, evaluator=evaluator)
    shown = metadata(result, "prompt_candidates")
    assert shown["outcome"] == "not_possible"
    assert "too few: 10 to train on and 0 held out" in shown["report"]
    assert server.calls == []

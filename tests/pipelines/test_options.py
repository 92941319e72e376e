"""What a command chooses holds while it works, and the environment is as before afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debrief.cli.run_options import RunOptions, UiOptions
from debrief.errors import InputError
from debrief.settings import environment, load_settings
from debrief.stages.configuration import EvaluatorChoice, LakeChoice, ScopeChoice, StageOptions
from debrief.weekly import Done
from pipelines.configuration import RunConfiguration, configuration_of
from resources import Stages


def test_what_was_chosen_holds_within_the_block_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    monkeypatch.setenv("DEBRIEF_MODEL", "openai/gpt-5")
    monkeypatch.delenv("DEBRIEF_LAKE", raising=False)
    before = environment()
    with RunOptions(model="openai/other", lake=str(tmp_path / "own")).applied() as settings:
        assert (settings.model, settings.lake) == ("openai/other", str(tmp_path / "own"))
        assert load_settings().model == "openai/other"
    assert environment() == before
    with pytest.raises(RuntimeError), RunOptions(no_model=True).applied():
        raise RuntimeError
    assert environment() == before
    assert load_settings().model == "openai/gpt-5"


@pytest.mark.parametrize("usd", [0.0, 0.5])
def test_a_limit_of_nothing_is_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usd: float
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    with RunOptions(max_cost_usd=usd).applied() as settings:
        assert settings.max_cost_usd == usd
        assert configuration_of(settings).stages.evaluator.max_cost_usd == usd
    with RunOptions().applied() as settings:
        assert settings.max_cost_usd is None


def test_a_folder_that_is_not_there_is_refused_by_each_command(tmp_path: Path) -> None:
    for options in (RunOptions, UiOptions):
        with pytest.raises(InputError, match="is not a folder"):
            options(sessions=[str(tmp_path / "nowhere")])


def test_a_run_asks_a_model_where_one_is_named_or_a_judge_has_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path))
    for name in ("DEBRIEF_MODEL", "DEBRIEF_NO_MODEL", "DEBRIEF_MODEL_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def evaluator(**options: Any) -> tuple[bool, str]:
        chosen = RunOptions(**options)
        with chosen.applied() as settings:
            found = configuration_of(settings).stages.evaluator
            return found.no_model, found.model

    monkeypatch.setenv("OPENROUTER_API_KEY", "")
    assert evaluator() == (True, "")
    assert evaluator(model="claude-code") == (False, "claude-code")
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or")
    assert evaluator() == (False, ""), "the model that the judges' files name"
    assert evaluator(no_model=True) == (True, "")
    monkeypatch.setenv("DEBRIEF_NO_MODEL", "1")
    assert evaluator() == (True, "")
    assert evaluator(model="claude-code") == (False, "claude-code")


def test_runs_that_belong_together_share_the_limits_of_the_command() -> None:
    parts = [Done(stage="a", calls=3, cost_usd=0.5), Done(stage="b", calls=4, cost_usd=None)]

    def left(**limits: float) -> tuple[float | None, float | None]:
        given = StageOptions(evaluator=EvaluatorChoice.model_validate(limits))
        of_command = RunConfiguration(stages=given, langfuse={}, webhook={})
        found = of_command.after(parts).stages.evaluator
        return found.max_calls, found.max_cost_usd

    assert left(max_calls=8, max_cost_usd=2.0) == (1, 1.5)
    assert left(max_calls=5) == (0, None)
    assert left(max_cost_usd=0.0) == (None, 0.0)
    assert left() == (None, None)


def test_what_a_run_is_configured_with_is_what_dagster_takes() -> None:
    given = StageOptions(lake=LakeChoice(url="/lake"), scope=ScopeChoice(where=["tool=droid"]))
    configuration = RunConfiguration(stages=given, langfuse={"enabled": False}, webhook={})
    config = configuration.for_dagster(prompt_candidates={"trials": 3})
    stages = config["resources"]["stages"]["config"]
    assert Stages(**stages).options == given
    assert config["ops"] == {"prompt_candidates": {"config": {"trials": 3}}}
    assert "ops" not in configuration.for_dagster()

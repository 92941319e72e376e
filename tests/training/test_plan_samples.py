from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.snapshots.model import PromptSnapshot
from debrief.training.plans import load_training_sample

WHOLE = {
    "prompts/main.md": "Be brief.",
    "prompts/reviewer.md": "Look twice.",
    "metadata.json": json.dumps(
        {
            "tool": "droid",
            "model": "opus",
            "prompt_fingerprint": "b7d4e2f9",
            "eval_fingerprint": "a3f8b2c1",
        }
    ),
    "plan.md": "# Plan",
    "code_trace.md": "# Trace",
    "human_feedback.md": "Good.",
    "judge_reuse.json": json.dumps(
        {"judge_name": "reuse", "weight": 0.5, "score": 0.8, "feedback": "fine"}
    ),
    "judge_reuse.md": "# reuse",
    "test_results_before.json": '{"passed": 3}',
    "test_results_after.json": '{"passed": 4}',
}


def folder(tmp_path: Path, **changes: str | None) -> Path:
    top = tmp_path / "fix-retries"
    for name, text in {**WHOLE, **changes}.items():
        if text is not None:
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("latin-1"))
    return top


def test_a_whole_folder_is_a_whole_sample(tmp_path: Path) -> None:
    loaded = load_training_sample(folder(tmp_path))
    assert loaded.warnings == ()
    sample = loaded.sample
    assert sample.plan_id == "fix-retries"
    assert sample.used_prompts == PromptSnapshot(
        main="Be brief.", subagents={"reviewer": "Look twice."}
    )
    assert (sample.tool, sample.model) == ("droid", "opus")
    assert (sample.prompt_fingerprint, sample.eval_fingerprint) == ("b7d4e2f9", "a3f8b2c1")
    assert sample.judge_results[0].score == 0.8
    assert sample.test_results_after == {"passed": 4}


@pytest.mark.parametrize(
    ("name", "text", "part", "reason"),
    [
        pytest.param("plan.md", None, "plan_content", "is missing", id="no plan"),
        pytest.param("plan.md", "\xff", "plan_content", "is not UTF-8", id="a plan in Latin-1"),
        pytest.param("test_results_before.json", "{", "test_results_before", "Invalid JSON", id="half a file"),
        pytest.param("test_results_before.json", "[]", "test_results_before", "should be an object", id="a list"),
        pytest.param("prompts/main.md", None, "used_prompts", "has no main.md", id="no main prompt"),
        pytest.param("metadata.json", None, "eval_fingerprint", "is missing", id="no metadata"),
        pytest.param("metadata.json", "{", "eval_fingerprint", "cannot be read", id="broken metadata"),
    ],
)  # fmt: skip
def test_a_part_that_is_missing_or_broken_is_none_with_a_warning(
    tmp_path: Path, name: str, text: str | None, part: str, reason: str
) -> None:
    loaded = load_training_sample(folder(tmp_path, **{name: text}))
    assert getattr(loaded.sample, part) is None
    assert [reason in warning.reason for warning in loaded.warnings] == [True]
    assert loaded.sample.judge_results


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Invalid JSON"),
        ('{"judge_name": "reuse", "score": 80}', "score: Input should be less than or equal to 1"),
    ],
)
def test_a_broken_judge_costs_only_itself(tmp_path: Path, text: str, reason: str) -> None:
    loaded = load_training_sample(folder(tmp_path, **{"judge_plan.json": text}))
    assert [one.judge_name for one in loaded.sample.judge_results] == ["reuse"]
    (warning,) = loaded.warnings
    assert Path(warning.path).name == "judge_plan.json"
    assert reason in warning.reason


def test_without_metadata_the_tool_is_the_default(tmp_path: Path) -> None:
    assert (
        load_training_sample(folder(tmp_path, **{"metadata.json": None})).sample.tool
        == "claude-code"
    )


def test_an_empty_folder_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no part"):
        load_training_sample(tmp_path)
    with pytest.raises(InputError, match="no folder"):
        load_training_sample(tmp_path / "missing")

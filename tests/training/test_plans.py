"""What prompts are improved with: lines of training sets, and what ``eval`` filed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.snapshots.fingerprint import compute_prompt_fingerprint
from debrief.snapshots.model import PromptSnapshot
from debrief.training.lessons import (
    LessonFilter,
    PlanLessons,
    findings_of,
    lessons_of,
    load_training_sample,
    plan_lessons,
)
from tests.training.lakes import TASK, lake_of, lake_of_lessons, stored
from tests.training.scenario import FINGERPRINT, PROMPT, says, session, turn

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
    assert [result.judge_name for result in loaded.sample.judge_results] == ["reuse"]
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


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_lessons(tmp_path_factory.mktemp("lake"))


def test_lessons_are_the_lines_with_the_prompts_that_were_used(lake: Lake) -> None:
    found = list(lessons_of(lake, LessonFilter()))
    assert len(found) == 20
    assert {sample.prompt_fingerprint for sample in found} == {PROMPT}
    one = found[0]
    assert one.plan_content == "Fix part 0 and its word0."
    assert one.used_prompts == PromptSnapshot(
        main="Be brief.", subagents={"reviewer": "Review it."}
    )
    assert {sample.split for sample in found} == {"train", "eval"}
    assert "- reuse: 0.80 of 1. uses what is there" in findings_of(one)
    assert "- task_completion: 0.67 of 1" in findings_of(one)


def test_the_request_is_the_first_that_is_known(tmp_path: Path) -> None:
    begun = turn("", says("On it."), number=0)
    lake = lake_of(tmp_path, [session("s1", begun, turn("Fix it.", says("Fixed.")))])
    stored(lake)
    assert [lesson.plan_content for lesson in lessons_of(lake, LessonFilter())] == ["Fix it."]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"task": TASK}, 20),
        ({"task": "other"}, 0),
        ({"fingerprint": PROMPT}, 20),
        ({"fingerprint": FINGERPRINT}, 20),
        ({"fingerprint": "00000000"}, 0),
        ({"tool": "droid"}, 0),
        ({"model": "opus", "tool": "claude-code"}, 20),
    ],
)
def test_lessons_are_filtered(lake: Lake, wanted: dict[str, str], count: int) -> None:
    assert len(list(lessons_of(lake, LessonFilter(**wanted)))) == count


def test_samples_that_eval_exported_are_lessons_too(tmp_path: Path) -> None:
    for number in range(12):
        place = tmp_path / f"plan-{number}"
        (place / "prompts").mkdir(parents=True)
        (place / "prompts/main.md").write_text("Be brief.")
        (place / "plan.md").write_text(f"Do part {number}.")
        (place / "judge_reuse.json").write_text('{"judge_name": "reuse", "score": 0.5}')
        told = {"tool": "droid", "prompt_fingerprint": PROMPT, "eval_fingerprint": "a3f8b2c1"}
        (place / "metadata.json").write_text(json.dumps(told))
    (tmp_path / "plan-0/plan.md").unlink()
    (tmp_path / "empty").mkdir()
    found = plan_lessons(tmp_path, LessonFilter(tool="droid", fingerprint=FINGERPRINT))
    assert len(found.samples) == 11
    assert {sample.split for sample in found.samples} == {"train", "eval"}
    assert [(Path(lost.path).name, lost.reason) for lost in found.unusable] == [
        ("empty", "holds no part of a training sample"),
        ("plan-0", "plan.md is missing"),
    ]
    assert plan_lessons(tmp_path, LessonFilter(tool="claude-code")).samples == ()
    only = plan_lessons(tmp_path, LessonFilter(task="plan-3")).samples
    assert [sample.plan_id for sample in only] == ["plan-3"]
    assert plan_lessons(tmp_path / "nowhere", LessonFilter()) == PlanLessons()


def test_prompts_without_a_noted_fingerprint_have_their_own(tmp_path: Path) -> None:
    folder(tmp_path, **{"metadata.json": None})
    (sample,) = plan_lessons(tmp_path, LessonFilter()).samples
    prompts = PromptSnapshot(main="Be brief.", subagents={"reviewer": "Look twice."})
    assert sample.prompt_fingerprint == compute_prompt_fingerprint(prompts)

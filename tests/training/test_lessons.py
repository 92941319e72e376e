"""What prompts are improved with: lines of training sets, and what ``eval --export`` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.lake import Lake
from debrief.snapshots.model import PromptSnapshot
from debrief.training.lessons import (
    LessonFilter,
    findings_of,
    lessons_of,
    plan_lessons,
    prompts_of,
)
from tests.training.lakes import TASK, lake_of, lake_of_lessons, stored
from tests.training.scenario import FINGERPRINT, PROMPT, says, session, turn


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return lake_of_lessons(tmp_path_factory.mktemp("lake"))


def test_lessons_are_the_lines_with_the_prompts_that_were_used(lake: Lake) -> None:
    found = list(lessons_of(lake, LessonFilter()))
    assert len(found) == 10
    assert prompts_of(found) == {PROMPT: 10}
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
    assert [one.plan_content for one in lessons_of(lake, LessonFilter())] == ["Fix it."]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"task": TASK}, 10),
        ({"task": "other"}, 0),
        ({"fingerprint": PROMPT}, 10),
        ({"fingerprint": FINGERPRINT}, 10),
        ({"fingerprint": "00000000"}, 0),
        ({"tool": "droid"}, 0),
        ({"model": "opus", "tool": "claude-code"}, 10),
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
    found = list(plan_lessons(tmp_path, LessonFilter(tool="droid", fingerprint=FINGERPRINT)))
    assert len(found) == 11
    assert {one.split for one in found} == {"train", "eval"}
    assert list(plan_lessons(tmp_path, LessonFilter(tool="claude-code"))) == []
    assert [one.plan_id for one in plan_lessons(tmp_path, LessonFilter(task="plan-3"))] == [
        "plan-3"
    ]
    assert list(plan_lessons(tmp_path / "nowhere", LessonFilter())) == []

"""Marks on rubrics that are hard to judge by."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.rubrics.linting import lint, scale_points
from tests.rubrics.scenario import SCALE, rubric


def rules(**changed: Any) -> set[str]:
    return {mark.rule for mark in lint([rubric(**changed)])}


def test_a_sound_rubric_has_no_marks() -> None:
    assert rules() == set()


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        pytest.param({"name": "Clear Goals and Fast Replies"}, "double-barrelled", id="two names"),
        pytest.param(
            {"description": "The user states the goal and answers questions."},
            "double-barrelled",
            id="two deeds",
        ),
        pytest.param({"description": "The user gives an appropriate goal."}, "hedged", id="hedge"),
        pytest.param(
            {"scoring_criteria": SCALE.replace("Once, late", "somewhat late")}, "hedged", id="in the scale"
        ),
        pytest.param({"scoring_criteria": "1: Poor\n5: Excellent"}, "unanchored", id="ends alone"),
        pytest.param({"scoring_criteria": "from bad to best"}, "unanchored", id="no points"),
        pytest.param({"scoring_criteria": SCALE + "\n6: Beyond all"}, "unanchored", id="a sixth point"),
        pytest.param({"scoring_criteria": SCALE.replace("Once, early", "Never seen")}, "unanchored", id="two points alike"),
        pytest.param({"description": "The assistant writes correct code."}, "about-the-ai", id="the agent"),
        pytest.param(
            {"scoring_criteria": SCALE.replace("In every prompt", "A long, exhaustive prompt")},
            "rewards-length",
            id="length",
        ),
    ],
)  # fmt: skip
def test_each_fault_gets_its_mark(changed: dict[str, Any], rule: str) -> None:
    assert rule in rules(**changed)


def test_two_rubrics_that_say_the_same_are_marked_once() -> None:
    marks = lint([rubric(1), rubric(2, name="Names the Places")])
    assert [(mark.rubric_id, mark.rule) for mark in marks] == [("rubric_002", "overlap")]
    assert "rubric_001" in marks[0].message


@pytest.mark.parametrize(
    "scale",
    [
        SCALE,
        SCALE.replace("\n", " "),
        SCALE.replace(": ", " - "),
        "\n".join(f"- **{line.replace(':', '**:')}" for line in SCALE.splitlines()),
        SCALE.replace(": ", " (level): "),
    ],
)
def test_a_scale_is_read_in_the_forms_that_models_write(scale: str) -> None:
    points = scale_points(scale)
    assert list(points) == [1, 2, 3, 4, 5]
    assert points[4].endswith("In most prompts")
    assert "unanchored" not in {mark.rule for mark in lint([rubric(scoring_criteria=scale)])}


@given(st.text(max_size=200), st.text(max_size=200), st.text(max_size=200))
def test_any_text_can_be_linted(name: str, description: str, criteria: str) -> None:
    for mark in lint([rubric(name=name, description=description, scoring_criteria=criteria)]):
        assert mark.message

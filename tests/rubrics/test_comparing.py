"""Two sets of rubrics, side by side by key."""

from __future__ import annotations

from debrief.rubrics.page import compare_rubrics
from tests.rubrics.scenario import rubric


def test_what_came_went_and_changed_is_told_by_key() -> None:
    before = [rubric(1), rubric(2, weight=0.5), rubric(3), rubric(4)]
    after = [
        rubric(1, id="rubric_009"),
        rubric(2, weight=0.8),
        rubric(3, description="Other words."),
        rubric(5),
    ]
    changes = {change.key: change for change in compare_rubrics(before, after)}
    assert {key: change.what for key, change in changes.items()} == {
        "key-1": "same", "key-2": "changed", "key-3": "changed", "key-5": "came", "key-4": "went",
    }  # fmt: skip
    assert (changes["key-2"].weight_before, changes["key-2"].weight_after) == (0.5, 0.8)
    assert (changes["key-3"].reworded, changes["key-2"].reworded) == (True, False)
    assert changes["key-1"].place_after == "rubric_009"


def test_the_same_key_of_two_score_names_is_two_rubrics() -> None:
    changes = compare_rubrics([rubric(1)], [rubric(1, score_name="token_efficiency")])
    assert [(change.score_name, change.what) for change in changes] == [
        ("excellence", "went"), ("token_efficiency", "came"),
    ]  # fmt: skip

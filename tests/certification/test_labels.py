"""Which labels count for a certificate, and what several people say together."""

from __future__ import annotations

import pytest

from debrief.certification import BlindLabel, blind_labels
from debrief.outcomes.store import Label


def given(value: str, rater: str = "ada", *, blind: bool = True, name: str = "success") -> Label:
    return Label(session_id="s1", name=name, value=value, source="view", rater=rater, blind=blind)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ([given("good")], BlindLabel(is_complete=True)),
        ([given("bad")], BlindLabel(is_complete=False)),
        ([given("partial")], BlindLabel(is_complete=False, verdict="partial")),
        (
            [given("complete_unverified")],
            BlindLabel(is_complete=True, verdict="complete_unverified"),
        ),
        ([given("good", blind=False)], None),
        ([given("unsure")], None),
        ([given("undetermined")], None),
        ([given("1", name="task_completion")], None),
        ([given("good"), given("bad")], BlindLabel(is_complete=False)),
        ([given("good"), given("unsure")], None),
        ([given("good"), given("bad", "bob")], BlindLabel(is_complete=False)),
        ([given("good"), given("unsure", "bob")], BlindLabel(is_complete=True)),
        (
            [given("bad"), given("complete_verified", "bob"), given("complete_verified", "cy")],
            BlindLabel(is_complete=True, verdict="complete_verified"),
        ),
        (
            [given("failed"), given("partial", "bob"), given("complete_verified", "cy")],
            BlindLabel(is_complete=False, verdict="partial"),
        ),
    ],
)
def test_the_last_word_of_each_person_and_the_middle_one_of_several_counts(
    labels: list[Label], found: BlindLabel | None
) -> None:
    assert blind_labels(labels).get("s1") == found

"""Sides of the split: by week, by repository, by time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.training.splits import PlacedLine, SplitRule, later_than_eval, parse_split
from tests.training.scenario import MONDAY

MOMENTS = st.datetimes(datetime(2025, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC))
SPANS = st.tuples(MOMENTS, st.timedeltas(timedelta(0), timedelta(days=3)))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("week", SplitRule()),
        ("repository", SplitRule("repository")),
        ("time:2026-01-31", SplitRule("time", date(2026, 1, 31))),
    ],
)
def test_a_rule_is_named_in_a_word(text: str, rule: SplitRule) -> None:
    assert parse_split(text) == rule


@pytest.mark.parametrize("text", ["", "time", "time:", "time:soon", "repo", "week:2026-01-31"])
def test_what_names_no_rule_is_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_split(text)


def test_whole_repositories_are_held_out_whatever_the_week() -> None:
    rule = SplitRule("repository")
    sides = {
        name: {rule.side_of(name, MONDAY + timedelta(weeks=week)) for week in range(20)}
        for name in map(str, range(400))
    }
    assert all(len(found) == 1 for found in sides.values())
    assert 40 < sum(found == {"eval"} for found in sides.values()) < 120


@given(st.lists(st.tuples(st.sampled_from("abc"), SPANS), max_size=12))
def test_by_time_nothing_that_is_held_out_is_older_than_what_is_trained_on(
    sessions: list[tuple[str, tuple[datetime, timedelta]]],
) -> None:
    rule = SplitRule("time", date(2026, 1, 1))
    lines = [
        PlacedLine(name, rule.side_of(name, began), began, began + lasted)
        for name, (began, lasted) in sessions
        if not rule.runs_over(began, began + lasted)
    ]
    assert not any(later_than_eval(lines).values())


def test_a_line_to_train_on_that_is_later_is_told_of_its_repository_alone() -> None:
    def line(repository: str, side: str, day: int) -> PlacedLine:
        began = MONDAY + timedelta(days=day)
        return PlacedLine(repository, "eval" if side == "eval" else "train", began, began)

    lines = [
        *(line("shop", "train", 1), line("shop", "eval", 0)),
        *(line("bank", "train", 1), line("bank", "eval", 2)),
        *(line("farm", "train", 1), line("farm", "eval", 1)),  # one ends as the other begins
        line("zoo", "train", 9),
    ]
    assert later_than_eval(lines) == {"bank": False, "farm": False, "shop": True}

"""Single values of transcripts: times, counts, and what programs put into texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.keys import FIRST_WEEK, week_of
from debrief.sessions.readers.values import (
    inside,
    moment,
    moment_of_change,
    whole_number,
    without,
    without_leading,
)

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [f"2026-01-05T{text}" for text in ("12:00:00Z", "14:00:00+02:00", "12:00:00")]
    + [1767614400, 1767614400.0, 1767614400000, "1767614400", "1767614400000", "1767614400.0"],
)
def test_a_time_in_any_notation_is_the_same_moment(value: Any) -> None:
    assert moment(value) == NOON


@pytest.mark.parametrize(
    "value",
    [
        *(
            "",
            "soon",
            "123456789",
            "1" * 17,
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59-23:00",
            0,
            -5,
            10**30,
            True,
        ),
        float("nan"),
        float("inf"),
        None,
        [],
        {},
    ],
)
def test_what_is_no_time_of_a_session_is_none(value: Any) -> None:
    assert moment(value) is None


@given(st.integers(-(10**20), 10**20))
def test_a_time_of_change_always_has_a_week(nanoseconds: int) -> None:
    assert week_of(moment_of_change(nanoseconds)) >= FIRST_WEEK


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (3, 3),
        (2.0, 2),
        (-1, 0),
        (True, 0),
        ("3", 3),
        ("-3", 0),
        ("3k", 0),
        ("9" * 16, 0),
        (None, 0),
        (2**60, 0),
        (float("nan"), 0),
    ],
)
def test_counts_are_whole_numbers_or_nothing(value: Any, number: int) -> None:
    assert whole_number(value) == number


NAMES = ("note", "reminder")
TEXTS = st.lists(
    st.sampled_from(
        ["<note>", "</note>", "<reminder>", "</reminder>", "<note", "a", "b", " ", "\n"]
    ),
    max_size=12,
).map("".join)


@given(TEXTS)
def test_they_are_found_as_a_pattern_finds_them(text: str) -> None:
    pattern = re.compile(r"\s*<(note|reminder)>.*?</\1>\s*", re.DOTALL)
    rest = text
    while found := pattern.match(rest):
        rest = rest[found.end() :]
    assert without_leading(text, NAMES) == rest
    found = re.search(r"<note>(.*?)</note>", text, re.DOTALL)
    assert inside(text, "note") == (found[1] if found else None)
    assert without(text, ["note"]) == re.sub(r"\s*<note>.*?</note>", "", text, flags=re.DOTALL)


def test_thousands_that_are_never_closed_cost_no_more_than_reading_them() -> None:
    text = "<note>" * 200_000
    assert without(text, NAMES) is text
    assert without_leading(text, NAMES) is text
    assert inside(text, "note") is None

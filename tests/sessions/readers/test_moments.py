"""Times in transcripts are UTC, or are not believed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.readers.moments import moment, moment_of_change
from debrief.weeks import FIRST_WEEK, week_of

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-05T12:00:00Z",
        "2026-01-05T14:00:00+02:00",
        "2026-01-05T12:00:00",
        1767614400,
        1767614400.0,
        1767614400000,
    ],
)
def test_a_time_in_any_notation_is_the_same_moment(value: Any) -> None:
    assert moment(value) == NOON


@pytest.mark.parametrize(
    "value",
    [
        "",
        "soon",
        "1970-01-01T00:00:00Z",
        "9999-12-31T23:59:59-23:00",
        0,
        -5,
        10**30,
        True,
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

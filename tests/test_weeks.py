from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from debrief.keys import is_week, week_of


@pytest.mark.parametrize(
    ("moment", "week"),
    [
        pytest.param(datetime(2026, 11, 16, tzinfo=UTC), "2026-11-16", id="the first instant"),
        pytest.param(
            datetime(2026, 11, 22, 23, 59, tzinfo=UTC), "2026-11-16", id="the last minute"
        ),
        pytest.param(
            datetime(2026, 1, 1, tzinfo=UTC), "2025-12-29", id="over the turn of the year"
        ),
        pytest.param(
            datetime(2026, 11, 23, 1, tzinfo=timezone(timedelta(hours=2))),
            "2026-11-16",
            id="already Monday where the person is, still Sunday in UTC",
        ),
        pytest.param(datetime(2026, 11, 16), "2026-11-16", id="a time without a zone is UTC"),
    ],
)
def test_a_session_belongs_to_the_week_of_its_monday_in_utc(moment: datetime, week: str) -> None:
    assert week_of(moment) == week


@pytest.mark.parametrize("text", ["2026-11-17", "2026-W47", "", "2026-13-01", "soon"])
def test_only_the_date_of_a_monday_is_a_week(text: str) -> None:
    assert not is_week(text)

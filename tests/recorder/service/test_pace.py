"""How fast an answer has to be taken."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.recorder.service.pace import ReadingPace

PATIENCE, RATE = 60.0, 1_000.0


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(1.0, 100)), max_size=30))
def test_whoever_keeps_to_the_rate_may_read_for_ever(waits: list[tuple[float, float]]) -> None:
    pace, now = ReadingPace(PATIENCE, RATE), 100.0
    for seconds, times in waits:
        pace.pause(now, 10_000_000)
        now += seconds
        taken = round(seconds * RATE * times) + 1
        assert pace.left(now, 10_000_000 - taken) > 0
        pace.resume(now, 10_000_000 - taken)


@given(st.lists(st.floats(1, 50), min_size=1, max_size=30), st.floats(0, 0.5))
def test_whoever_falls_behind_has_so_many_seconds_in_all(waits: list[float], share: float) -> None:
    pace, now, behind = ReadingPace(PATIENCE, RATE), 0.0, 0.0
    for seconds in waits:
        pace.pause(now, 1_000_000)
        now += seconds
        taken = int(seconds * RATE * share)
        behind += seconds - taken / RATE
        assert pace.left(now, 1_000_000 - taken) == pytest.approx(PATIENCE - behind, abs=1e-6)
        pace.resume(now, 1_000_000 - taken)
        now += 1_000.0


def test_reading_fast_once_earns_no_longer_wait() -> None:
    pace = ReadingPace(PATIENCE, RATE)
    pace.pause(0.0, 500_000_000)
    pace.resume(1.0, 0)
    pace.pause(2.0, 500_000)
    assert pace.left(32.0, 500_000) == 30.0
    assert pace.left(62.0, 500_000) == 0.0

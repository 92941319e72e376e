from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from debrief.training.splitting import side_of
from tests.training.scenario import MONDAY

MOMENTS = st.integers(0, 10**8).map(lambda seconds: MONDAY + timedelta(seconds=seconds))


def test_a_repository_s_week_is_on_one_side() -> None:
    sides = {side_of("shop", MONDAY + timedelta(hours=hours)) for hours in range(0, 150)}
    assert len(sides) == 1


def test_the_held_out_share_is_about_what_was_asked_for() -> None:
    sides = [side_of(f"repo{number}", MONDAY, 0.2) for number in range(5_000)]
    assert 0.18 < sides.count("eval") / len(sides) < 0.22


@given(st.text(), MOMENTS)
def test_a_greater_share_takes_from_training_alone(repository: str, moment: datetime) -> None:
    sides = [side_of(repository, moment, share) for share in (0.0, 0.1, 0.5, 0.9)]
    assert sides == sorted(sides, reverse=True)
    assert sides[0] == "train"

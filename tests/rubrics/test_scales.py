"""Labels as people write them, placed on the scale of what they are held against."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.rubrics.measures import FIVE, FRACTION, Scale, scale_of_dimension
from debrief.scoring.dimensions import DIMENSIONS

COMPLETION = scale_of_dimension("task_completion")
SATISFACTION = scale_of_dimension("user_satisfaction")


@pytest.mark.parametrize(
    ("scale", "said", "level", "good"),
    [
        (FRACTION, "0.8", 4, True),
        (FRACTION, "0.6", 3, True),
        (FRACTION, "0.2", 1, False),
        (FRACTION, "1", 4, True),
        (FRACTION, "80%", 4, True),
        (FRACTION, "2/5", 1, False),
        (FRACTION, "pass", None, True),
        (FIVE, "4", 3, True),
        (FIVE, "4.0", 3, True),
        (FIVE, "3 of 5", 2, False),
        (FIVE, "👎", None, False),
        (COMPLETION, "Complete", 2, True),
        (COMPLETION, "0.33", 1, False),
        (COMPLETION, "no", None, False),
        (SATISFACTION, "good", 2, True),
        (SATISFACTION, "'poor'", 0, False),
    ],
)
def test_a_label_is_read_on_its_scale(
    scale: Scale, said: str, level: int | None, good: bool
) -> None:
    reading = scale.read(said)
    assert (reading.level, reading.good) == (level, good)


@pytest.mark.parametrize(
    ("scale", "said"),
    [
        *((FRACTION, said) for said in ("4", "1.2", "nan", "fine")),
        *((FIVE, said) for said in ("4.5", "0", "6", "80%")),
        *((COMPLETION, said) for said in ("done", "0.5", "4/5", "")),
    ],
)
def test_what_is_not_on_the_scale_is_refused_and_never_rounded(scale: Scale, said: str) -> None:
    with pytest.raises(InputError) as refusal:
        scale.read(said)
    if (scale, said) == (FRACTION, "4"):
        assert "4/5 for a scale of five" in str(refusal.value)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_higher_number_never_has_a_lower_level(one: float, other: float) -> None:
    low, high = FRACTION.of(min(one, other)), FRACTION.of(max(one, other))
    assert (low.level or 0) <= (high.level or 0)
    assert low.good <= high.good


def test_every_category_of_every_dimension_is_read_by_name_and_by_worth() -> None:
    for dimension in DIMENSIONS:
        scale = scale_of_dimension(dimension.name)
        for anchor in dimension.anchors:
            if anchor.label:
                assert scale.read(anchor.label) == scale.of(anchor.value)

"""Metrics of scores against success, and the intervals around them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from debrief.rubrics.measures import weighted_kappa
from debrief.validity import metrics

Floats = NDArray[np.float64]


def once(count: int) -> Floats:
    """Weights of no resample."""
    return np.ones((1, count))


pairs = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.integers(0, 3)), min_size=2)


@given(pairs)
def test_auroc_counts_pairs_as_often_as_their_sessions_are_drawn(
    rows: list[tuple[int, bool, int]],
) -> None:
    drawn = [(score, won) for score, won, times in rows for _ in range(times)]
    good, bad = [s for s, won in drawn if won], [s for s, won in drawn if not won]
    scores, success, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = metrics.auroc(scores.astype(float), success, weights[None, :].astype(float))
    if good and bad:
        expected = np.mean([(g > b) + (g == b) / 2 for g in good for b in bad])
        assert found[0] == pytest.approx(expected)
    else:
        assert math.isnan(found[0])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2))
def test_kappa_is_the_usual_one(rows: list[tuple[bool, bool]]) -> None:
    said, success = (np.array(column) for column in zip(*rows, strict=True))
    usual = weighted_kappa([int(s) for s in said], [int(s) for s in success], 2)
    found = metrics.kappa(said, success, once(len(rows)))[0]
    assert math.isnan(found) if usual is None else found == pytest.approx(usual.value)


def test_a_probability_is_compared_with_knowing_the_base_rate_alone() -> None:
    success = np.array([True] * 3 + [False] * 7)
    for said, expected in ((np.full(10, 0.3), 0.0), (success.astype(float), -0.21)):
        assert metrics.brier_excess(said, success, once(10))[0] == pytest.approx(expected)
    assert metrics.brier_excess(np.full(10, 0.9), success, once(10))[0] > 0.3


def test_bands_of_an_honest_probability_come_true() -> None:
    random = np.random.default_rng(1)
    said = random.uniform(size=2_000)
    success = random.uniform(size=2_000) < said
    weights = metrics.resampled([str(n) for n in range(2_000)], 200)
    bands = metrics.calibration(said, success, weights)
    assert [band.sessions for band in bands] == [400] * 5
    assert sum(band.came.low <= band.said <= band.came.high for band in bands) >= 4


def test_the_surest_half_is_at_both_ends() -> None:
    kept = metrics.outer_half(np.array([0.5, 0.1, 0.9, 0.4, 0.6, 0.2, 0.8, 0.45]))
    assert list(kept) == [False, True, True, False, False, True, True, False]


def simulated(seed: int, each: int) -> tuple[Floats, Floats]:
    """AUROC of noise: 40 tasks of `each` runs, which succeed and score alike."""
    random = np.random.default_rng(seed)
    tasks = [str(task) for task in range(40) for _ in range(each)]
    success = np.repeat(random.uniform(size=40) < 0.5, each)
    scores = np.repeat(random.normal(size=40), each) + 0.1 * random.normal(size=40 * each)
    clustered = metrics.auroc(scores, success, metrics.resampled(tasks, 300))
    alone = metrics.resampled([str(number) for number in range(len(tasks))], 300)
    return clustered, metrics.auroc(scores, success, alone)


def test_noise_is_seldom_significant_even_where_tasks_repeat() -> None:
    missed = {"clustered": 0, "alone": 0}
    for seed in range(150):
        for name, draws in zip(missed, simulated(seed, each=6), strict=True):
            found = metrics.estimate(draws)
            assert found is not None
            missed[name] += not found.low <= 0.5 <= found.high
    assert missed["clustered"] / 150 < 0.12
    assert missed["alone"] / 150 > 0.4


def test_a_mean_leaves_out_a_family_that_has_no_value() -> None:
    nothing = np.array([np.nan, np.nan])
    columns = [np.array([0.6, 0.4]), np.array([0.8, np.nan]), nothing]
    assert metrics.mean(columns) == pytest.approx([0.7, 0.4])
    assert metrics.estimate(metrics.mean([nothing])) is None

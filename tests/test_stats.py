"""Statistics: each is that of scipy or statsmodels, or comes to an exact count."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from debrief import stats
from debrief.stats import corrected_rate


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_an_interval_of_a_mean_is_that_of_scipy(values: list[float]) -> None:
    found = stats.mean_of(values, None, -math.inf)
    if len({*values}) > 1 and np.std(values) > 1e-9:
        low, high = scipy.stats.ttest_1samp(values, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


@given(st.integers(1, 200), st.data())
def test_a_share_has_the_interval_of_wilson(of: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(0, of))
    found = stats.share_of(count, of)
    assert found is not None
    assert found.value == count / of
    expected = scipy.stats.binomtest(count, of).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx(expected, abs=1e-9)


def test_a_share_of_nothing_is_not_known_and_none_of_ten_may_still_be_a_quarter() -> None:
    assert stats.share_of(0, 0) is None
    found = stats.share_of(0, 10)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.0, 0.2775), abs=5e-5)  # Wilson (1927)
    with pytest.raises(ValueError, match="11 of 10"):
        stats.share_of(11, 10)


VALUES = st.lists(st.floats(0, 1), min_size=3, max_size=15, unique=True)


@given(VALUES, VALUES)
def test_one_stratum_is_compared_as_two_samples_are(
    first: list[float], second: list[float]
) -> None:
    groups = [False] * len(first) + [True] * len(second)
    found = stats.stratified_difference([*first, *second], groups, ["one"] * len(groups))
    low, high = scipy.stats.ttest_ind(second, first).confidence_interval()
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)
    assert (found.strata, found.first, found.second) == (1, len(first), len(second))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=15))
def test_pairs_are_compared_as_the_paired_test_does(pairs: list[tuple[float, float]]) -> None:
    values = [value for pair in pairs for value in pair]
    tasks = [str(task) for task, _ in enumerate(pairs) for _ in range(2)]
    found = stats.stratified_difference(values, [False, True] * len(pairs), tasks)
    gains = [second - first for first, second in pairs]
    assert found.value == pytest.approx(np.mean(gains), abs=1e-9)
    if np.std(gains) > 1e-6:
        low, high = scipy.stats.ttest_1samp(gains, 0).confidence_interval()
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)


def test_a_task_that_only_one_group_has_says_nothing_and_no_more_does_an_easy_one() -> None:
    # The second prompts got the easy task: on each task by itself they are 0.1 worse.
    easy = [(0.9, False), *[(0.8, True)] * 8]
    hard = [*[(0.3, False)] * 8, (0.2, True)]
    own = [(1.0, True), (1.0, True)]
    rows = [(*row, name) for name, rows in (("e", easy), ("h", hard), ("own", own)) for row in rows]
    values, groups, tasks = zip(*rows, strict=True)
    found = stats.stratified_difference(values, groups, tasks)
    assert (found.strata, found.first, found.second) == (2, 9, 9)
    assert found.value == pytest.approx(-0.1)
    assert np.mean([v for v, second, _ in rows if second]) > np.mean(
        [v for v, second, _ in rows if not second]
    )


def test_what_cannot_be_compared_has_no_difference_and_one_pair_has_no_interval() -> None:
    apart = stats.stratified_difference([0.1, 0.9], [False, True], ["one", "other"])
    assert apart == stats.StratifiedDifference()
    pair = stats.stratified_difference([0.25, 0.75], [False, True], ["one", "one"])
    assert pair.value == pytest.approx(0.5)
    assert (pair.low, pair.high, pair.strata) == (None, None, 1)


def test_the_interval_of_a_difference_within_tasks_holds_the_truth_as_often_as_it_says() -> None:
    random = np.random.default_rng(7)
    held = 0
    for _ in range(200):
        tasks = random.integers(0, 12, 60)
        second = random.uniform(size=60) < tasks / 12
        values = tasks / 12 + 0.1 * second + random.normal(0, 0.1, 60)
        found = stats.stratified_difference(list(values), list(second), [str(t) for t in tasks])
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.1 <= found.high
    assert 0.91 <= held / 200 <= 0.99


@given(st.lists(st.floats(0, 1), max_size=20))
def test_corrected_p_values_are_those_of_scipy(p_values: list[float]) -> None:
    expected = scipy.stats.false_discovery_control(p_values) if p_values else []
    assert stats.false_discovery(p_values) == pytest.approx(list(expected))


def test_a_rate_is_corrected_for_the_mistakes_that_labels_show() -> None:
    rate = corrected_rate((550, 1_000), (45, 50), (30, 50))
    assert rate is not None
    assert rate.value == pytest.approx((0.55 + 0.6 - 1) / 0.5)
    assert rate.low < rate.value < rate.high
    assert corrected_rate((5, 10), (1, 2), (1, 2)) is None, "who guesses has none"
    assert corrected_rate((5, 10), (2, 2), (0, 0)) is None


def test_the_interval_of_a_corrected_rate_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        drawn = random.Random(seed)
        truth = [drawn.random() < 0.4 for _ in range(400)]
        said = [drawn.random() < (0.85 if good else 0.25) for good in truth]
        labelled = [*zip(truth, said, strict=True)][:60]
        good, bad = ([each for each in labelled if each[0] is side] for side in (True, False))
        hits = sum(answer for _, answer in good), len(good)
        misses = sum(not answer for _, answer in bad), len(bad)
        found = corrected_rate((sum(said), 400), hits, misses)
        held += found is not None and found.low <= 0.4 <= found.high
    assert held >= 0.94 * 300


def test_small_groups_have_the_exact_p_value_and_larger_ones_that_of_scipy() -> None:
    # Of all ways to divide 16 values in halves, two are as far apart as the low and the high ones.
    halves = stats.rank_test(range(8), range(8, 16))
    assert halves == pytest.approx(2 / math.comb(16, 8), abs=1e-12)
    assert stats.rank_test([1, 1, 2], [1, 1, 2]) == 1
    ours, theirs = range(9), range(5, 14)
    expected = scipy.stats.mannwhitneyu(ours, theirs, method="asymptotic").pvalue
    assert stats.rank_test(ours, theirs) == pytest.approx(expected)


def test_help_and_rows_do_not_wait_for_the_libraries() -> None:
    heavy = "{'numpy', 'scipy', 'statsmodels', 'pandas'} & set(sys.modules)"
    code = f"import sys, debrief.stats, debrief.rubrics.trial; print({heavy})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"


def test_what_every_run_needs_does_not_wait_for_most_of_scipy() -> None:
    code = """
import sys
from debrief import stats
stats.mean_of([0.1, 0.4])
stats.share_of(1, 3)
stats.rank_test([1, 2, 3], [2, 4, 5])
stats.lower_bound(3, 4)
stats.false_discovery([0.01, 0.4])
stats.stratified_difference([0.1, 0.4, 0.5], [False, True, True], ["one"] * 3)
print({"scipy.stats", "scipy.optimize", "statsmodels", "pandas"} & set(sys.modules))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"

"""Statistics: each is that of scipy or statsmodels, or comes to an exact count."""

from __future__ import annotations

import math
import random
import subprocess
import sys

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from debrief import stats
from debrief.stats import corrected_rate, gwet_ac1, weighted_kappa

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
    found = stats.auroc(scores.astype(float), success, weights[None, :].astype(float))
    if good and bad:
        expected = np.mean([(g > b) + (g == b) / 2 for g in good for b in bad])
        assert found[0] == pytest.approx(expected)
    else:
        assert math.isnan(found[0])


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=3))
def test_auroc_is_the_statistic_of_mann_and_whitney(rows: list[tuple[int, bool]]) -> None:
    good, bad = [s for s, won in rows if won], [s for s, won in rows if not won]
    if good and bad:
        scores, success = (np.array(column) for column in zip(*rows, strict=True))
        expected = scipy.stats.mannwhitneyu(good, bad).statistic / (len(good) * len(bad))
        found = stats.auroc(scores.astype(float), success, once(len(rows)))
        assert found[0] == pytest.approx(expected)


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2))
def test_kappa_is_the_usual_one(rows: list[tuple[bool, bool]]) -> None:
    said, success = (np.array(column) for column in zip(*rows, strict=True))
    usual = weighted_kappa([int(s) for s in said], [int(s) for s in success], 2)
    found = stats.kappa(said, success, once(len(rows)))[0]
    assert math.isnan(found) if usual is None else found == pytest.approx(usual.value)


def test_a_probability_is_compared_with_knowing_the_base_rate_alone() -> None:
    success = np.array([True] * 3 + [False] * 7)
    for said, expected in ((np.full(10, 0.3), 0.0), (success.astype(float), -0.21)):
        assert stats.brier_excess(said, success, once(10))[0] == pytest.approx(expected)
    assert stats.brier_excess(np.full(10, 0.9), success, once(10))[0] > 0.3


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2))
def test_a_kappa_of_names_is_the_usual_one_and_knows_no_order(
    rows: list[tuple[bool, bool]],
) -> None:
    ours, theirs = zip(*rows, strict=True)
    usual = weighted_kappa([*map(int, ours)], [*map(int, theirs)], 2)
    named = stats.nominal_kappa([*map(str, ours)], [*map(str, theirs)])
    assert (named is None) == (usual is None)
    assert named is None or usual is None or named.value == pytest.approx(usual.value)
    near, far = (stats.nominal_kappa([*"abcabc"], [*"abcab", last]) for last in "ba")
    assert near is not None
    assert far is not None
    assert near.value == pytest.approx(far.value, abs=0.02)


def simulated(seed: int, each: int) -> tuple[Floats, Floats]:
    """AUROC of noise: 40 tasks of `each` runs, which succeed and score alike."""
    random = np.random.default_rng(seed)
    tasks = [str(task) for task in range(40) for _ in range(each)]
    success = np.repeat(random.uniform(size=40) < 0.5, each)
    scores = np.repeat(random.normal(size=40), each) + 0.1 * random.normal(size=40 * each)
    clustered = stats.auroc(scores, success, stats.resampled(tasks, 300))
    alone = stats.resampled([str(number) for number in range(len(tasks))], 300)
    return clustered, stats.auroc(scores, success, alone)


def test_noise_is_seldom_significant_even_where_tasks_repeat() -> None:
    missed = {"clustered": 0, "alone": 0}
    for seed in range(150):
        for name, draws in zip(missed, simulated(seed, each=6), strict=True):
            found = stats.estimate_of(draws)
            assert found is not None
            missed[name] += not found.low <= 0.5 <= found.high
    assert missed["clustered"] / 150 < 0.12
    assert missed["alone"] / 150 > 0.4


def test_a_mean_leaves_out_a_family_that_has_no_value() -> None:
    nothing = np.array([np.nan, np.nan])
    columns = [np.array([0.6, 0.4]), np.array([0.8, np.nan]), nothing]
    assert stats.mean_of_families(columns) == pytest.approx([0.7, 0.4])
    assert stats.estimate_of(stats.mean_of_families([nothing])) is None


def test_a_kappa_of_a_resample_counts_a_session_as_often_as_it_is_drawn() -> None:
    # Drawn 20, 5, 10 and 15 times, the cells are those of the textbook: kappa is 0.4.
    said, success = np.array([True, True, False, False]), np.array([True, False, True, False])
    found = stats.kappa(said, success, np.array([[20.0, 5, 10, 15], [0, 0, 0, 0]]))
    assert found[0] == pytest.approx(0.4)
    assert math.isnan(found[1])


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


@pytest.mark.filterwarnings("ignore:Precision loss occurred:RuntimeWarning")  # equal values
@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=20),
    st.lists(st.integers(0, 9), min_size=2, max_size=20),
)
def test_a_difference_has_the_interval_of_welch(ours: list[int], theirs: list[int]) -> None:
    from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

    found = stats.difference_of(ours, theirs)
    assert found.value == pytest.approx(np.mean(ours) - np.mean(theirs))
    if len({*ours}) > 1 or len({*theirs}) > 1:
        both = CompareMeans(DescrStatsW(ours), DescrStatsW(theirs))
        expected = both.tconfint_diff(usevar="unequal")
        assert (found.low, found.high) == pytest.approx(expected)
    else:
        assert found.low == found.value == found.high


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


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=5, max_size=30))
def test_a_rank_correlation_is_spearman_s(rows: list[tuple[int, int]]) -> None:
    ours, theirs = zip(*rows, strict=True)
    found = stats.rank_correlation(ours, theirs)
    if len({*ours}) == 1 or len({*theirs}) == 1:
        assert found is None
    else:
        assert found is not None
        assert found.value == pytest.approx(scipy.stats.spearmanr(ours, theirs).statistic)
        assert found.low <= found.value + 1e-6
        assert found.value - 1e-6 <= found.high


def test_what_two_measures_have_from_a_third_is_taken_out_of_their_correlation() -> None:
    random = np.random.default_rng(3)
    size = random.normal(size=400)
    ours, theirs = size + random.normal(size=400), size + random.normal(size=400)
    plain = stats.rank_correlation(list(ours), list(theirs))
    partial = stats.rank_correlation(list(ours), list(theirs), list(size))
    assert plain is not None
    assert plain.low > 0.3
    assert partial is not None
    assert partial.low < 0 < partial.high
    one, two, three = (scipy.stats.rankdata(column) for column in (ours, theirs, size))
    known = np.corrcoef([one, two, three])
    above = known[0, 1] - known[0, 2] * known[1, 2]
    below = math.sqrt((1 - known[0, 2] ** 2) * (1 - known[1, 2] ** 2))
    assert partial.value == pytest.approx(above / below)


def test_rising_steps_pool_what_falls_with_its_neighbour() -> None:
    points, steps = stats.isotonic(np.array([0.1, 0.2, 0.2, 0.3]), np.array([0.0, 1.0, 1.0, 0.5]))
    assert list(points) == [0.1, 0.2, 0.3]
    assert list(steps) == pytest.approx([0.0, 2.5 / 3, 2.5 / 3])


@given(st.lists(st.floats(0, 1), max_size=20))
def test_corrected_p_values_are_those_of_scipy(p_values: list[float]) -> None:
    expected = scipy.stats.false_discovery_control(p_values) if p_values else []
    assert stats.false_discovery(p_values) == pytest.approx(list(expected))


def test_the_textbook_example_of_two_raters_gives_the_textbook_numbers() -> None:
    pairs = [(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15
    kappa = weighted_kappa([a for a, _ in pairs], [b for _, b in pairs], 2)
    assert kappa is not None
    assert kappa.value == pytest.approx(0.4)
    assert (kappa.low, kappa.high) == pytest.approx((0.1511, 0.6489), abs=5e-5)


def test_where_nearly_all_get_the_same_ac1_stays_meaningful_and_kappa_may_not_be_defined() -> None:
    ours = [1] * 95 + [1] * 2 + [0] * 2 + [0]
    theirs = [1] * 95 + [0] * 2 + [1] * 2 + [0]
    kappa, ac1 = weighted_kappa(ours, theirs, 2), gwet_ac1(ours, theirs, 2)
    assert kappa
    assert kappa.value < 0.35
    assert ac1
    assert ac1.value > 0.94
    same = gwet_ac1([1, 1, 1], [1, 1, 1], 5)
    assert same
    assert same.value == 1
    assert weighted_kappa([1, 1, 1], [1, 1, 1], 5) is None
    assert weighted_kappa([1], [1], 5) is None
    assert gwet_ac1([1], [1], 5) is None


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40))
def test_agreement_is_bounded_and_the_same_both_ways(pairs: list[tuple[int, int]]) -> None:
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    for measure in (weighted_kappa, gwet_ac1):
        estimate, other = measure(ours, theirs, 5), measure(theirs, ours, 5)
        assert (estimate is None) == (other is None)
        if estimate is not None and other is not None:
            assert estimate.value == pytest.approx(other.value)
            assert -1 <= estimate.low <= estimate.value + 1e-9
            assert estimate.value - 1e-9 <= estimate.high <= 1
            if ours == theirs:
                assert estimate.value == pytest.approx(1)


def test_a_judges_rate_is_corrected_for_the_mistakes_that_labels_show() -> None:
    people = [True] * 50 + [False] * 50
    judge = [True] * 45 + [False] * 5 + [True] * 20 + [False] * 30
    sensitivity, specificity, rate = corrected_rate(people, judge, rate=0.55, count=1_000)
    assert (sensitivity, specificity) == pytest.approx((0.9, 0.6))
    assert rate is not None
    assert rate.value == pytest.approx((0.55 + 0.6 - 1) / 0.5)
    assert rate.low < rate.value < rate.high
    guesses = corrected_rate([True, True, False, False], [True, False, True, False], 0.5, 10)
    assert guesses[2] is None, "a judge that guesses has none"
    assert corrected_rate([True, True], [True, True], 0.5, 10)[2] is None


def test_the_interval_of_a_corrected_rate_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(300):
        drawn = random.Random(seed)
        truth = [drawn.random() < 0.4 for _ in range(400)]
        judge = [drawn.random() < (0.85 if good else 0.25) for good in truth]
        found = corrected_rate(truth[:60], judge[:60], sum(judge) / 400, 400)[2]
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
stats.rank_correlation([1, 2, 3, 4, 5], [2, 1, 3, 5, 4])
stats.false_discovery([0.01, 0.4])
stats.stratified_difference([0.1, 0.4, 0.5], [False, True, True], ["one"] * 3)
print({"scipy.stats", "scipy.optimize", "statsmodels", "pandas"} & set(sys.modules))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "set()"

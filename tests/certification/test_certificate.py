"""Who is certified: bounds that hold, reviewers whose hit rates are known, and what is missing."""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from debrief import stats
from debrief.certification import (
    REQUIRED,
    BlindLabel,
    Certificate,
    Share,
    certify,
    corrected_rate,
)
from debrief.scoring.verdict import VerdictName

COMPLETE, INCOMPLETE = BlindLabel(is_complete=True), BlindLabel(is_complete=False)


def planted(
    complete: tuple[int, int], incomplete: tuple[int, int], waiting: int = 0
) -> Certificate:
    """A reviewer with so many hits of so many labels on either side, and unlabelled reviews."""
    labels: dict[str, BlindLabel] = {}
    reviews: dict[str, VerdictName] = {}
    sides: tuple[tuple[str, BlindLabel, tuple[int, int], tuple[VerdictName, VerdictName]], ...] = (
        ("c", COMPLETE, complete, ("complete_verified", "partial")),
        ("i", INCOMPLETE, incomplete, ("failed", "complete_unverified")),
    )
    for side, label, (hits, of), (hit, miss) in sides:
        for number in range(of):
            labels[f"{side}{number}"] = label
            reviews[f"{side}{number}"] = hit if number < hits else miss
    reviews |= {f"w{number}": "partial" for number in range(waiting)}
    return certify("reader", labels, reviews)


def simulated(
    seed: int, sessions: int, labelled: int, base: float, hits: Mapping[bool, float]
) -> Certificate:
    """A reviewer who hits both sides so often, with labels on a random part of its sessions."""
    drawn = random.Random(seed)
    truth = {f"s{number}": drawn.random() < base for number in range(sessions)}
    reviews: dict[str, VerdictName] = {
        name: "complete_verified" if (drawn.random() < hits[good]) == good else "partial"
        for name, good in truth.items()
    }
    labels = {name: BlindLabel(is_complete=truth[name]) for name in list(truth)[:labelled]}
    return certify("reader", labels, reviews)


counts = st.integers(0, 60).flatmap(lambda of: st.tuples(st.integers(0, of), st.just(of)))


@given(counts, counts)
def test_a_reviewer_is_certified_only_where_both_exact_bounds_hold(
    complete: tuple[int, int], incomplete: tuple[int, int]
) -> None:
    lows = [
        scipy.stats.binomtest(hits, of, alternative="greater").proportion_ci(method="exact").low
        if of
        else 0.0
        for hits, of in (complete, incomplete)
    ]
    found = planted(complete, incomplete)
    assert [found.complete_hit.low, found.incomplete_hit.low] == pytest.approx(lows)
    assert found.is_certified == (min(lows) >= REQUIRED)
    assert not (found.is_certified and found.is_refuted)


@pytest.mark.parametrize("rate", [0.5, 0.7, 0.799, 0.9, 0.99])
@pytest.mark.parametrize("of", [1, 5, 14, 40, 150])
def test_a_bound_lies_above_the_truth_in_one_case_of_twenty_at_most(rate: float, of: int) -> None:
    chances = scipy.stats.binom.pmf(range(of + 1), of, rate)
    above = sum(chance for hits, chance in enumerate(chances) if stats.lower_bound(hits, of) > rate)
    assert above <= 0.05 + 1e-9


@given(counts, counts)
def test_the_missing_labels_certify_and_one_fewer_does_not(
    complete: tuple[int, int], incomplete: tuple[int, int]
) -> None:
    found = planted(complete, incomplete, waiting=10_000)
    more = found.complete_hit.missing, found.incomplete_hit.missing
    whole = [
        (hits + extra, of + extra)
        for (hits, of), extra in zip((complete, incomplete), more, strict=True)
    ]
    assert planted(whole[0], whole[1]).is_certified
    assert found.missing == (None if found.is_refuted else sum(more))
    if more[1]:
        fewer = (whole[1][0] - 1, whole[1][1] - 1)
        assert not planted(whole[0], fewer).is_certified


def test_good_reviewers_are_certified_and_those_under_the_bound_hardly_ever() -> None:
    def certified(complete: float, incomplete: float) -> int:
        hits = {True: complete, False: incomplete}
        return sum(simulated(seed, 200, 150, 0.7, hits).is_certified for seed in range(200))

    assert certified(0.97, 0.97) > 190
    assert certified(0.97, 0.79) <= 10
    assert certified(0.79, 0.97) <= 10
    assert certified(1.0, 0.0) == 0, "who calls everything complete is worth nothing"


def test_a_corrected_rate_holds_the_truth_as_often_as_it_says() -> None:
    held = told = 0
    for seed in range(300):
        found = simulated(seed, 2_000, 300, 0.6, {True: 0.93, False: 0.91})
        rate = found.corrected
        if rate is not None:
            told += 1
            held += rate.low <= 0.6 <= rate.high
    assert told > 250
    assert held >= 0.93 * told


def test_a_rate_is_corrected_towards_what_labels_show_and_not_without_a_certificate() -> None:
    good = planted((95, 100), (45, 50))
    rate = corrected_rate(700, 1_000, good)
    assert rate is not None
    assert rate.value == pytest.approx((0.7 + 0.9 - 1) / (0.95 + 0.9 - 1))
    assert rate.low < rate.value < rate.high
    assert corrected_rate(0, 0, good) is None
    assert corrected_rate(700, 1_000, planted((95, 100), (30, 50))) is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_kappa_is_the_usual_one(pairs: list[tuple[bool, bool]]) -> None:
    labels = {f"s{n}": BlindLabel(is_complete=label) for n, (label, _) in enumerate(pairs)}
    reviews: dict[str, VerdictName] = {
        f"s{n}": "complete_verified" if said else "failed" for n, (_, said) in enumerate(pairs)
    }
    table = np.zeros((2, 2))
    for label, said in pairs:
        table[int(label), int(said)] += 1
    with np.errstate(all="ignore"):
        expected = cohens_kappa(table, return_results=False)
    found = certify("reader", labels, reviews).kappa
    assert np.isnan(expected) if found is None else found == pytest.approx(expected)


def test_undetermined_reviews_are_counted_and_are_no_hit_and_no_miss() -> None:
    labels = {"a": COMPLETE, "b": INCOMPLETE, "c": BlindLabel(is_complete=False, verdict="partial")}
    found = certify("reader", labels, {"a": "undetermined", "b": "failed", "c": "undetermined"})
    assert (found.sessions, found.undetermined) == (3, 2)
    assert (found.complete_hit, found.incomplete_hit) == (Share(0, 0), Share(1, 1))
    assert found.exact == Share(0, 1), "of a label that names a verdict it is no match either"
    assert [(each.session_id, each.is_miss) for each in found.disagreements] == [("c", False)]


def test_exact_is_of_labels_that_name_a_verdict_and_misses_come_first() -> None:
    named = {
        "a": BlindLabel(is_complete=True, verdict="complete_verified"),
        "b": BlindLabel(is_complete=True, verdict="complete_unverified"),
        "c": BlindLabel(is_complete=False, verdict="partial"),
        "d": COMPLETE,
    }
    found = certify(
        "reader",
        named,
        {
            "a": "complete_verified",
            "b": "complete_verified",
            "c": "complete_verified",
            "d": "failed",
        },
    )
    assert found.exact == Share(1, 3)
    assert (found.complete_hit, found.incomplete_hit) == (Share(2, 3), Share(0, 1))
    assert [(each.session_id, each.is_miss) for each in found.disagreements] == [
        ("c", True), ("d", True), ("b", False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("complete", "incomplete", "waiting", "sentence"),
    [
        ((0, 0), (0, 0), 99, "not certified: 28 more labels would tell"),
        ((20, 20), (13, 13), 99, "not certified: 1 more label would tell"),
        ((20, 20), (5, 5), 99, "not certified: 9 more labels would tell"),
        (
            *((20, 20), (5, 5), 3),
            "not certified: 9 more labels would tell, with 3 unlabelled sessions left",
        ),
        (
            *((20, 20), (5, 5), 1),
            "not certified: 9 more labels would tell, with 1 unlabelled session left",
        ),
        (
            *((20, 20), (3, 12), 99),
            "not certified: it finds at most 53% of incomplete sessions, and 80% is needed",
        ),
        (
            *((20, 20), (14, 14), 0),
            "certified: it finds 100% of complete and 100% of incomplete sessions",
        ),
    ],
)
def test_a_sentence_says_what_is_proven_and_what_is_missing(
    complete: tuple[int, int], incomplete: tuple[int, int], waiting: int, sentence: str
) -> None:
    assert planted(complete, incomplete, waiting).sentence == sentence


def test_rare_sides_need_more_sessions_than_labels() -> None:
    found = planted((45, 45), (5, 5), waiting=500)
    assert (found.missing, found.likely) == (9, 90)
    none_seen = planted((5, 5), (0, 0))
    assert none_seen.likely is None

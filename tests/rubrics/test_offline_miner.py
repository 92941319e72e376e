"""Mining by contrast, weeks becoming one set; noise gives nothing, and a real effect is found."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from debrief.rubrics.avoiding import look_at
from debrief.rubrics.contrast import (
    BUILT_IN,
    SessionValues,
    effect_of,
    ends_of,
    good_of,
    score_of,
    sides_of,
    values_of,
)
from debrief.rubrics.model import ExtractedRubric
from debrief.rubrics.offline_miner import SHARED, OfflineMiner, false_discoveries, search
from debrief.scoring.verdict import VERDICT_NAMES, VerdictName
from debrief.sessions.model import Session
from debrief.stats import cliffs_delta, sessions_needed
from tests.rubrics.scenario import (
    BAD,
    GOOD,
    WEEK,
    a_week,
    edits,
    mined,
    read,
    scores,
    session,
    valued,
)
from tests.training.scenario import said

MISSES = "avoids-missed-edit"


def mine(*weeks: Any, week: str = WEEK) -> list[ExtractedRubric]:
    return list(OfflineMiner().extract(week, "excellence", read(*weeks)).rubrics)


def test_what_the_good_sessions_avoid_is_found_with_evidence_of_the_bad_ones_in_any_order() -> None:
    sessions, rows = a_week(12, 12)
    found = mine((sessions, rows))
    assert {row.avoids for row in found} == {MISSES, "avoids-correction"}
    rubric = next(row for row in found if row.avoids == MISSES)
    assert rubric.name == "Avoids Missed Edits"
    assert rubric.id == f"{WEEK}.excellence.{MISSES}"
    assert {piece.session_id for piece in rubric.evidence} <= {one.id for one in sessions[12:]}
    assert {piece.quote for piece in rubric.evidence} == {"String to replace not found in file."}
    assert rubric.effect_size == 1
    assert mine((sessions[::-1], rows[::-1])) == found


def test_what_all_sessions_or_the_bad_ones_avoid_is_no_candidate_and_the_reason_is_told() -> None:
    sessions, rows = a_week(12, 12)
    alike = [session(n, GOOD, calls=edits(1)) for n in range(24)]
    for some, values in (
        (alike, [n / 23 for n in range(24)]),
        (sessions, [1 - (row.overall_quality or 0) for row in rows]),
    ):
        scored = [scores(one, value) for one, value in zip(some, values, strict=True)]
        found = OfflineMiner().extract(WEEK, "excellence", read((some, scored)))
        assert found.rubrics == ()
        reasons = {row.name: row.reason for row in found.dropped}
        assert reasons["Avoids Missed Edits"] == "good sessions do not avoid it clearly more"


def test_a_trouble_is_not_offered_for_a_score_that_is_made_of_the_same_signals() -> None:
    week = a_week(12, 12)
    for score_name, name in (
        ("excellence", "Avoids Interruptions"),
        ("user_turn_efficiency", "Avoids Corrections"),
    ):
        found = OfflineMiner().extract(WEEK, score_name, read(week))
        reasons = {row.name: (row.effect, row.reason) for row in found.dropped}
        assert reasons[name] == (None, SHARED)


def test_a_small_week_borrows_from_the_weeks_before() -> None:
    own, week = a_week(2, 3, weeks=1), "2026-03-09"
    assert mine(own, week=week) == []
    found = mine(own, a_week(5, 5), week=week)
    assert found
    assert all(rubric.evidence[0].session_id.startswith("session-1-") for rubric in found)


@pytest.mark.parametrize("verdict", ["complete_unverified", "undetermined"])
def test_a_week_of_which_nothing_is_good_or_bad_says_nothing_new(verdict: VerdictName) -> None:
    own = session(1, ("please look",), weeks=1)
    row = scores(own, 0.5, verdict=said(verdict))
    assert not mine(([own], [row]), a_week(10, 10), week="2026-03-09")


def test_a_large_week_stands_alone_and_each_week_is_read_once() -> None:
    read_weeks: list[str] = []
    weeks = read(a_week(10, 10), a_week(2, 3, weeks=1))

    def read_week(week: str) -> Iterator[tuple[Session, SessionValues]]:
        read_weeks.append(week)
        yield from weeks(week)

    miner = OfflineMiner()
    for name in BUILT_IN:
        assert miner.extract(WEEK, name, read_week).rubrics
    assert read_weeks == [WEEK]
    miner.extract("2026-03-09", "excellence", read_week)
    assert read_weeks == [WEEK, "2026-03-09", "2026-02-16", "2026-02-23"]


def test_sessions_without_a_prompt_or_a_score_are_left_out() -> None:
    sessions, rows = a_week(6, 6)
    silent = session(90, ())
    unscored = session(91, BAD)
    more_rows = [*rows, scores(silent, 1.0), scores(unscored, None, status="failed")]
    with_them = mine(([*sessions, silent, unscored], more_rows))
    assert with_them == mine((sessions, rows))


WEEKS = ["2026-03-02", "2026-03-09", "2026-03-16"]


def test_what_shows_every_week_outweighs_what_showed_once() -> None:
    rows = [mined("avoids-polling", week, effect_size=0.5) for week in WEEKS]
    rows.append(mined("avoids-missed-edit", WEEKS[0], effect_size=0.9))
    first, second = OfflineMiner().consolidate(rows, "excellence")
    assert (first.id, first.key, first.weight) == ("rubric_001", "avoids-polling", 1.0)
    assert (second.id, second.key) == ("rubric_002", "avoids-missed-edit")
    assert second.weight < 1


def test_a_trouble_of_several_weeks_is_one_rubric_with_its_lineage_and_its_latest_text() -> None:
    rows = [mined("avoids-polling", week) for week in WEEKS[:2]]
    rows += [mined("avoids-polling", WEEKS[2], name="Avoids Asking Again")]
    (rubric,) = OfflineMiner().consolidate(rows, "excellence")
    assert (rubric.key, rubric.name) == ("avoids-polling", "Avoids Asking Again")
    assert rubric.sources == tuple(row.id for row in rows)
    assert len(rubric.sessions) == 30


@given(
    st.lists(st.tuples(st.sampled_from("abcdefghijklmnop"), st.sampled_from(WEEKS)), max_size=40)
)
def test_a_set_has_at_most_ten_rubrics_in_order_of_weight(pairs: list[tuple[str, str]]) -> None:
    rows = [mined(name, week) for name, week in dict.fromkeys(pairs)]
    found = OfflineMiner().consolidate(rows, "excellence")
    assert len(found) <= 10
    assert [rubric.id for rubric in found] == [f"rubric_{n:03}" for n in range(1, len(found) + 1)]
    weights = [rubric.weight for rubric in found]
    assert weights == sorted(weights, reverse=True)
    assert OfflineMiner().consolidate(rows[::-1], "excellence") == found


CHANCE = random.Random(7)
NOISE = [session(n, weeks=n % 6, calls=edits(CHANCE.randint(0, 3))) for n in range(120)]
DEALT = [scores(one, CHANCE.random()) for one in NOISE]


def test_shuffled_verdicts_and_scores_give_no_rubric_in_nearly_all_shuffles() -> None:
    assert {row.verdict.verdict for row in DEALT if row.verdict} == {"complete_verified", "partial"}
    found = false_discoveries(list(zip(NOISE, valued(DEALT), strict=True)), shuffles=50)
    assert found.true == dict.fromkeys(BUILT_IN, 0)
    assert found.share <= 0.04
    assert len(found.shuffled) == 50


def test_an_effect_in_sixty_of_a_hundred_and_twenty_sessions_is_found() -> None:
    sessions = [session(n, weeks=n % 6, calls=edits(0 if n < 60 else 2)) for n in range(120)]
    rows = [
        scores(one, min(1.0, max(0.0, CHANCE.gauss(0.7 if n < 60 else 0.3, 0.2))))
        for n, one in enumerate(sessions)
    ]
    seen = {one.id: look_at(one) for one in sessions}
    trials = search(list(zip(sessions, valued(rows), strict=True)), seen)
    kept = {t.key: t for t in trials if t.finding == "tells" and t.score_name == "excellence"}
    assert set(kept) == {MISSES}
    assert all((trial.low or 0) > 0 for trial in kept.values())


@given(st.lists(st.sampled_from([*VERDICT_NAMES, None]), max_size=30), st.integers(1, 4))
def test_good_is_done_and_checked_bad_is_partly_or_not_done_and_nothing_else_is_either(
    verdicts: list[VerdictName | None], minimum: int
) -> None:
    one = session(1)
    rows = [
        scores(structs.replace(one, id=f"s{n}"), 0.5, verdict=verdict and said(verdict))
        for n, verdict in enumerate(verdicts)
    ]
    values = values_of(valued(rows), "excellence")
    sides = sides_of(values, "excellence", share=0.25, minimum=minimum)
    good = {f"s{n}" for n, verdict in enumerate(verdicts) if verdict == "complete_verified"}
    bad = {f"s{n}" for n, verdict in enumerate(verdicts) if verdict in ("partial", "failed")}
    assert set(values) == good | bad
    if min(len(good), len(bad)) < minimum:
        assert sides is None
    else:
        assert sides is not None
        assert (set(sides.best), set(sides.worst)) == (good, bad)


LEVELS = st.lists(st.integers(1, 5), min_size=2, max_size=12)


@given(LEVELS, LEVELS)
def test_an_effect_turns_round_with_its_sides_and_lies_in_its_interval(
    one: list[int], other: list[int]
) -> None:
    effect = effect_of(one, other)
    assert effect["effect"] == round(-cliffs_delta(other, one).value, 4)
    assert -1 <= effect["low"] <= effect["effect"] <= effect["high"] <= 1
    assert 0 <= effect["p_value"] <= 1


@given(LEVELS, LEVELS)
def test_p_values_are_those_of_scipy(one: list[int], other: list[int]) -> None:
    from scipy.stats import PermutationMethod, mannwhitneyu

    small = len(one) + len(other) <= 16
    method = PermutationMethod(n_resamples=20_000) if small else "asymptotic"
    found = effect_of(one, other)["p_value"]
    if len({*one, *other}) == 1:
        assert found == 1
    else:
        expected = mannwhitneyu(one, other, alternative="two-sided", method=method).pvalue
        assert found == pytest.approx(expected, abs=1e-6)


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0, 1), max_size=40))
def test_ends_are_disjoint_and_apart_and_the_good_ones_are_the_best(
    values: dict[str, float],
) -> None:
    sides = ends_of(values, share=0.25, minimum=3)
    if sides is not None:
        assert not set(sides.best) & set(sides.worst)
        assert min(values[i] for i in sides.best) > max(values[i] for i in sides.worst)
        assert len(sides.best) == len(sides.worst) >= 3
    good = good_of(values, "token_efficiency", share=0.25)
    assert len(good) <= max(1, round(0.25 * len(values)))
    worst_of_good = min((values[id_] for id_ in good), default=0.0)
    assert all(values[id_] <= worst_of_good for id_ in values if good and id_ not in good)


def test_more_sessions_are_needed_for_smaller_effects_and_more_candidates() -> None:
    # Noether's own example: P(X > Y) = 0.7, two-sided 5 %, power 90 %.
    assert sessions_needed(0.4, 0.05, 0.9) == 88
    assert sessions_needed(0.33, 0.001) > sessions_needed(0.474, 0.001)
    assert sessions_needed(0.474, 0.001) > sessions_needed(0.474, 0.05)


def test_efficiency_is_not_known_of_a_session_that_changed_nothing() -> None:
    one = session(1)
    assert score_of(scores(one, 0.8), "excellence") == 1.0
    assert score_of(scores(one, None), "excellence") == 0.0
    assert score_of(scores(one, 0.8, token_efficiency=0.0), "token_efficiency") is None
    assert score_of(scores(one, 0.8, user_turn_efficiency=None), "user_turn_efficiency") is None
    assert score_of(scores(one, 0.8, status="failed"), "excellence") is None

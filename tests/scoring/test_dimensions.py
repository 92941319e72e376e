"""The six dimensions: how they follow from a review, and the one number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.scoring import calculate_overall_quality
from debrief.scoring.dimensions import (
    DIMENSIONS,
    DimensionError,
    Score,
    agreement_of,
    dimension_score,
    dimensions_of,
    overall_quality,
)
from debrief.scoring.llm_review import (
    ClaimReview,
    FrictionReview,
    Incident,
    PersonWords,
    RequestReview,
    SessionReview,
    ToolUse,
)
from debrief.scoring.model import ChunkScores, DimensionScore
from debrief.scoring.scorer import ChunkParameters, score_session
from debrief.scoring.verdict import VERDICT_NAMES, SessionVerdict, VerdictName
from debrief.sessions.model import Evidence
from tests.scoring.scenario import MIDDLING, ScriptedScorer, review, session, verdicts


def derived(said: SessionReview, verdict: VerdictName | None = None) -> dict[str, DimensionScore]:
    return {each.dimension: each for each in dimensions_of(said, verdict or said.verdict)}


def accepted(said: SessionReview) -> SessionVerdict:
    return SessionVerdict(verdict=said.verdict, basis="review", source="m")


@pytest.mark.parametrize(
    ("verdict", "category"),
    [
        ("complete_verified", "complete"),
        ("complete_unverified", None),
        ("partial", "partial"),
        ("failed", "failed"),
        ("undetermined", None),
    ],
)
def test_completion_follows_from_the_verdict_and_its_requests(
    verdict: VerdictName, category: str | None
) -> None:
    proof = Evidence(2, "c", "12 passed")
    asked = (
        RequestReview(turn=1, asked="add a tax", state="done_seen", proof=proof),
        RequestReview(turn=2, asked="push", state="declined"),
    )
    found = derived(review(requests=asked, verdict=verdict))["task_completion"]
    assert found.category == category
    assert found.rationale == "done, seen to hold: add a tax; declined with a reason: push."
    assert found.evidence == (proof,)


def test_numbers_are_the_reviews_own_and_say_what_decided_them() -> None:
    said = review(
        claims=(
            ClaimReview(turn=1, quote="All pass", state="contradicted"),
            ClaimReview(turn=1, quote="It builds", state="supported"),
        ),
        frictions=(
            FrictionReview(turn=2, what="No test ran"),
            FrictionReview(turn=3, what="The same edit failed thrice."),
        ),
    )
    found = derived(said)
    quality, effort = found["execution_quality"], found["resource_efficiency"]
    assert (quality.value, effort.value) == (0.8, 0.6)
    assert quality.rationale == (
        "contradicted claim: “All pass”. No test ran. The same edit failed thrice."
    )
    assert [place.turn for place in quality.evidence] == [1, 2, 3]
    assert effort.rationale == "No test ran. The same edit failed thrice."
    assert found["tool_mastery"].rationale == "Each call was of use."
    assert derived(review())["execution_quality"].rationale == "The review names no flaw."


@pytest.mark.parametrize(
    ("harms", "category"), [([], "adequate"), ([False], "partial"), ([False, True], "poor")]
)
def test_security_follows_from_incidents(harms: list[bool], category: str) -> None:
    incidents = tuple(Incident(turn=1, what="forced a push", harm=harm) for harm in harms)
    assert derived(review(incidents=incidents))["security_compliance"].category == category


@pytest.mark.parametrize(
    ("said", "category"),
    [
        ("", None),
        ("a", "excellent"),
        ("c", "partial"),
        ("cc", "poor"),
        ("aac", "good"),
        ("ac", "partial"),
    ],
)
def test_satisfaction_follows_from_the_persons_words(said: str, category: str | None) -> None:
    words = tuple(
        PersonWords(turn=2, quote=str(n), says="approval" if each == "a" else "correction")
        for n, each in enumerate(said)
    )
    assert derived(review(person=words))["user_satisfaction"].category == category


fraction = st.none() | st.floats(0, 1)


@given(
    st.sampled_from(VERDICT_NAMES),
    fraction,
    fraction,
    fraction,
    st.booleans(),
    st.lists(st.sampled_from(["approval", "correction"]), max_size=4),
)
def test_derived_dimensions_are_in_range_and_overall_is_no_more_than_quality(
    verdict: VerdictName,
    quality: float | None,
    effort: float | None,
    tools: float | None,
    harm: bool,
    words: list[Any],
) -> None:
    said = review(
        verdict=verdict,
        quality=quality,
        effort=effort,
        tools=ToolUse(value=tools),
        incidents=(Incident(turn=1, harm=harm),),
        person=tuple(PersonWords(turn=2, quote="w", says=each) for each in words),
    )
    scores = dimensions_of(said, verdict)
    assert [score.dimension for score in scores] == [each.name for each in DIMENSIONS]
    assert all(score.value is None or 0 <= score.value <= 1 for score in scores)
    assert all(score.rationale for score in scores)
    overall = overall_quality(scores, said, accepted(said))
    assert (overall is None) == (quality is None)
    assert overall is None or quality is None or 0 <= overall <= quality + 1e-12


def test_a_review_that_a_failed_check_contradicts_has_no_overall_quality() -> None:
    said = review()
    scores = dimensions_of(said, "partial")
    gated = SessionVerdict(
        verdict="partial", basis="review", source="m", stated=said.verdict, objection="failed_check"
    )
    assert overall_quality(scores, said, accepted(said)) is not None
    assert overall_quality(scores, said, gated) is None


def chunk(index: int, own: int, **changed: str | float | None) -> ChunkScores:
    return ChunkScores(
        index=index, tokens=own, own_tokens=own, dimension_scores=verdicts(**changed)
    )


@pytest.mark.parametrize(
    ("said", "agreement"),
    [
        ([{}], None),
        ([{}, {}], 1.0),
        ([{"tool_mastery": 1.0}, {"tool_mastery": 0.0}], 0.0),
        ([{"tool_mastery": 0.9}, {"tool_mastery": 0.7}], 0.8),
        ([{"tool_mastery": 1.0}, {"tool_mastery": None}], 1.0),
    ],
)
def test_agreement_is_that_of_the_dimension_on_which_parts_are_least_alike(
    said: list[dict[str, Any]], agreement: float | None
) -> None:
    found = agreement_of([chunk(n, 100, **each) for n, each in enumerate(said)])
    assert found == (None if agreement is None else pytest.approx(agreement))


def test_scores_are_uncertain_when_parts_disagree() -> None:
    given = session(turns=20)
    cut = ChunkParameters(target=200, overlap=0)
    half = len(cut.chunks_of(given)) / 2
    split = ScriptedScorer(lambda _, part: review(quality=1.0 if part.index < half else 0.1))
    row = score_session(given, split, cut)
    assert len(row.chunks) > 1
    assert row.uncertain
    assert not score_session(given, split).uncertain
    assert not score_session(given, ScriptedScorer(), cut).uncertain


def test_the_weights_make_one_and_every_value_has_an_anchor_from_worst_to_best() -> None:
    assert sum(round(100 * dimension.weight) for dimension in DIMENSIONS) == 100
    for dimension in DIMENSIONS:
        values = [anchor.value for anchor in dimension.anchors]
        assert values == sorted(set(values))
        assert (values[0], values[-1]) == (0, 1)
        assert all(anchor.text for anchor in dimension.anchors)
        assert all(bool(a.label) == (dimension.kind == "categorical") for a in dimension.anchors)


def test_overall_quality_is_the_weighted_mean() -> None:
    expected = 0.3 * 0.67 + 0.25 * 0.8 + 0.2 * 0.7 + 0.15 * 0.6 + 0.05 * 0.67 + 0.05 * 0.67
    assert calculate_overall_quality(verdicts()) == pytest.approx(expected)


@pytest.mark.parametrize(("end", "overall"), [(0, 0.0), (-1, 1.0)], ids=["worst", "best"])
def test_the_best_is_one_and_the_worst_is_nothing(end: int, overall: float) -> None:
    scores: dict[str, Score] = {
        d.name: d.anchors[end].label or d.anchors[end].value for d in DIMENSIONS
    }
    assert calculate_overall_quality(scores) == pytest.approx(overall, abs=1e-12)


def test_a_dimension_without_anything_to_go_by_takes_no_part() -> None:
    known: dict[str, Score] = {"execution_quality": 0.8, "user_satisfaction": "poor"}
    nothing: dict[str, Score] = dict.fromkeys(MIDDLING)
    assert calculate_overall_quality(nothing | known) == pytest.approx(0.25 * 0.8 / 0.3)
    assert calculate_overall_quality(nothing) is None


def test_scores_by_name_count_as_verdicts_do_and_other_names_beside_them_nothing() -> None:
    nested = {name: {"score": score} for name, score in MIDDLING.items()}
    given: list[Any] = [MIDDLING, nested, {**MIDDLING, "charisma": 1.0}]
    assert {calculate_overall_quality(one) for one in given} == {
        calculate_overall_quality(verdicts())
    }


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"task_completion": "amazing"}, "no category 'amazing'"),
        ({"task_completion": "good"}, "no category 'good'"),
        ({"task_completion": 0.9}, "needs a category"),
        ({"execution_quality": "good"}, "needs a number"),
        ({"execution_quality": True}, "needs a number"),
        ({"execution_quality": 1.01}, "not from 0 to 1"),
        ({"execution_quality": float("nan")}, "not from 0 to 1"),
        ({"tool_mastery": {"rationale": "fine"}}, "has no score"),
    ],
    ids=str,
)
def test_a_score_that_is_none_is_an_error(changed: Mapping[str, Score], reason: str) -> None:
    with pytest.raises(DimensionError, match=reason):
        calculate_overall_quality({**MIDDLING, **changed})


@pytest.mark.parametrize("name", MIDDLING)
def test_a_missing_dimension_is_an_error(name: str) -> None:
    rest = {other: score for other, score in MIDDLING.items() if other != name}
    with pytest.raises(DimensionError, match=name):
        calculate_overall_quality(rest)


def test_verdicts_given_twice_off_their_value_or_on_nothing_known_are_errors() -> None:
    forged = DimensionScore(dimension="task_completion", value=0.5, category="complete")
    with pytest.raises(DimensionError, match="twice"):
        calculate_overall_quality([*verdicts(), verdicts()[0]])
    with pytest.raises(DimensionError, match=r"not worth 0\.5"):
        calculate_overall_quality([forged, *verdicts()[1:]])
    with pytest.raises(DimensionError, match="not a dimension"):
        dimension_score("charisma", 1.0)

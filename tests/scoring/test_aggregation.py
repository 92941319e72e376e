"""Six dimensions, their aggregation over chunks, and the one number."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.models.answers import Answer
from debrief.scoring import calculate_overall_quality
from debrief.scoring.dimensions import (
    DIMENSIONS,
    DimensionError,
    Score,
    aggregate,
    combine,
    dimension_score,
    overall_of_reading,
    problem_of,
)
from debrief.scoring.model import ChunkScores, DimensionScore
from debrief.scoring.model_scorer import ModelChunkScorer
from debrief.scoring.scorer import ChunkParameters, score_session
from tests.scoring.scenario import MIDDLING, ScriptedScorer, answer, session, verdicts


def chunk(
    index: int, own: int, overlap: int = 0, person: int = 0, **changed: str | float | None
) -> ChunkScores:
    return ChunkScores(
        index=index,
        tokens=own + overlap,
        own_tokens=own,
        person_characters=person,
        verdicts=verdicts(**changed),
    )


def verdict_of(chunks: list[ChunkScores], name: str) -> DimensionScore:
    (found,) = [v for v in aggregate(chunks)[0] if v.dimension == name]
    return found


def test_a_single_chunk_speaks_for_the_session() -> None:
    assert aggregate([chunk(0, 100)]) == (verdicts(), None)


@pytest.mark.parametrize(
    ("sizes", "name", "said", "value"),
    [
        pytest.param([(300, 0), (100, 900)], "tool_mastery", [1.0, 0.2], 0.8, id="own tokens"),
        pytest.param([(0, 0), (0, 0)], "tool_mastery", [0.0, 1.0], 0.5, id="no tokens"),
        pytest.param(
            [(500, 0), (300, 0), (300, 0)], "user_satisfaction", ["poor", "good", "good"], 0.67,
            id="the most tokens win",
        ),
        pytest.param([(9, 0)] * 2, "user_satisfaction", ["poor", "excellent"], 0.0, id="a tie"),
        pytest.param([(9, 0)] * 2, "user_satisfaction", ["excellent", "poor"], 0.0, id="turned"),
        pytest.param(
            [(900, 0), (90, 0), (900, 0)], "security_compliance", ["adequate", "poor", "excellent"],
            0.0, id="one hazard among many chunks",
        ),
        pytest.param(
            [(900, 0), (100, 0)], "task_completion", ["failed", "complete"], 0.67, id="the end",
        ),
        pytest.param([(900, 0), (1, 0)], "task_completion", ["exceeded", "failed"], 0.0, id="broken"),
        pytest.param([(9, 0), (9, 0)], "task_completion", ["partial", None], 0.33, id="no end seen"),
        pytest.param([(9, 0), (9, 0)], "tool_mastery", [0.4, None], 0.4, id="nothing to go by"),
    ],
)  # fmt: skip
def test_each_dimension_is_put_together_as_what_it_says_demands(
    sizes: list[tuple[int, int]], name: str, said: list[Any], value: float
) -> None:
    chunks = [
        chunk(index, own, overlap, **{name: score})
        for index, ((own, overlap), score) in enumerate(zip(sizes, said, strict=True))
    ]
    found = verdict_of(chunks, name)
    assert found.value == pytest.approx(value)
    second = chunks[1].verdicts[[str(d.name) for d in DIMENSIONS].index(name)]
    assert f"Part 2 of {len(chunks)} ({second.shown}): {second.rationale}" in found.rationale


def test_satisfaction_is_weighed_by_what_the_person_said() -> None:
    much_work = chunk(0, 9_000, person=100, user_satisfaction="good")
    many_words = chunk(1, 100, person=300, user_satisfaction="poor")
    assert verdict_of([much_work, many_words], "user_satisfaction").category == "poor"


@pytest.mark.parametrize(
    ("said", "uncertain"),
    [
        pytest.param([{}, {}], False, id="of one mind"),
        pytest.param([{"tool_mastery": 0.6}, {"tool_mastery": 0.8}], False, id="nearly"),
        pytest.param(
            [{"task_completion": "partial"}, {"task_completion": "complete"}], False, id="finished"
        ),
        pytest.param([{"tool_mastery": 1.0}, {"tool_mastery": 0.1}], True, id="on one dimension"),
        pytest.param(
            [{"task_completion": "complete"}, {"task_completion": "failed"}], True, id="on the end"
        ),
        pytest.param([{"tool_mastery": 1.0}, {"tool_mastery": None}], False, id="only one says"),
        pytest.param(
            [{d.name: d.anchors[end].label or d.anchors[end].value for d in DIMENSIONS}
             for end in (0, -1)],
            True, id="on everything",
        ),
    ],
)  # fmt: skip
def test_scores_are_uncertain_when_parts_disagree_on_any_dimension_and_only_then(
    said: list[dict[str, Any]], uncertain: bool
) -> None:
    given = session(turns=20)
    cut = ChunkParameters(target=200, overlap=0)
    half = len(cut.chunks_of(given)) / 2
    scorer = ScriptedScorer(lambda _, part: verdicts(**said[part.index >= half]))
    row = score_session(given, scorer, cut)
    assert len(row.chunks) > 1
    assert row.uncertain is uncertain
    assert score_session(given, scorer).uncertain is False


def test_several_answers_become_their_mean_or_majority_with_an_interval() -> None:
    answers = [
        verdicts(tool_mastery=value, task_completion=category)
        for value, category in ((0.5, "complete"), (0.6, "partial"), (0.9, "complete"))
    ]
    together = {verdict.dimension: verdict for verdict in combine(answers)}
    mastery, completion = together["tool_mastery"], together["task_completion"]
    assert mastery.value == pytest.approx(2 / 3)
    assert mastery.spread == pytest.approx(0.2082, abs=1e-4)
    assert (mastery.low, mastery.high) == pytest.approx((0.1495, 1.0), abs=1e-3)
    assert (completion.category, completion.value) == ("complete", 0.67)
    assert together["execution_quality"].spread == 0
    tied = combine([verdicts(user_satisfaction=each) for each in ("good", "poor")])
    assert tied[-1].category == "poor"
    assert combine([verdicts(tool_mastery=each) for each in (None, 0.9, None)])[2].value is None


def test_a_row_by_several_answers_tells_how_certain_its_overall_quality_is() -> None:
    said = ((0.5, "complete"), (0.9, "partial"), (0.7, "complete"))
    doors = [
        partial(lambda text, _: Answer(text=text), answer(tool_mastery=v, task_completion=c))
        for v, c in said
    ]
    scorer = ModelChunkScorer("m", doors[0], further=doors[1:])
    row = score_session(session(turns=20), scorer, ChunkParameters(target=200))
    assert len(row.chunks) > 1
    assert all(len(part.answers) == 3 for part in row.chunks)
    overall = [
        overall_of_reading(verdicts(tool_mastery=v, task_completion=c), most=0.8) or 0
        for v, c in said
    ]
    assert row.overall_spread == pytest.approx(statistics.stdev(overall))
    assert (row.overall_low or 1) < min(overall) < max(overall) < (row.overall_high or 0)
    assert not problem_of(row)
    assert score_session(session(), ModelChunkScorer("m", doors[0])).overall_spread is None


scores: st.SearchStrategy[dict[Any, Any]] = st.fixed_dictionaries(
    {
        d.name: st.none()
        | (
            st.sampled_from([a.label for a in d.anchors])
            if d.kind == "categorical"
            else st.floats(0, 1)
        )
        for d in DIMENSIONS
    }
)
said = st.lists(st.tuples(scores, st.integers(0, 70_000)), min_size=1, max_size=8).map(
    lambda rows: [chunk(i, own, **given) for i, (given, own) in enumerate(rows)]
)


@settings(deadline=None)
@given(said)
def test_the_whole_lies_between_its_parts(chunks: list[ChunkScores]) -> None:
    together, agreement = aggregate(chunks)
    for column, verdict in enumerate(together):
        values = [v for part in chunks if (v := part.verdicts[column].value) is not None]
        assert (verdict.value is None) == (not values)
        assert verdict.value is None or min(values) <= verdict.value <= max(values)
    overall = calculate_overall_quality(together)
    assert (overall is None) == all(verdict.value is None for verdict in together)
    assert overall is None or 0 <= overall <= 1 + 1e-9
    assert agreement is None or 0 <= agreement <= 1


@settings(deadline=None)
@given(said, st.randoms())
def test_the_order_in_which_chunks_were_scored_does_not_matter(
    chunks: list[ChunkScores], order: random.Random
) -> None:
    shuffled = list(chunks)
    order.shuffle(shuffled)
    assert aggregate(shuffled) == aggregate(chunks)


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

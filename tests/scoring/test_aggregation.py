"""Aggregation: numbers by mean, categories by majority, the end counting double."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.scoring.dimensions import (
    DIMENSIONS,
    UNCERTAIN_BELOW,
    aggregate,
    calculate_overall_quality,
)
from debrief.scoring.model import ChunkVerdicts, Verdict
from tests.scoring.scenario import verdicts


def chunk(index: int, own: int, overlap: int = 0, **changed: str | float) -> ChunkVerdicts:
    return ChunkVerdicts(
        index=index, tokens=own + overlap, own_tokens=own, verdicts=verdicts(**changed)
    )


def verdict_of(chunks: list[ChunkVerdicts], name: str) -> Verdict:
    (found,) = [v for v in aggregate(chunks)[0] if v.dimension == name]
    return found


def test_a_single_chunk_speaks_for_the_session() -> None:
    assert aggregate([chunk(0, 100)]) == (verdicts(), None)


def test_numbers_are_averaged_by_own_tokens_and_not_by_overlapped_ones() -> None:
    chunks = [chunk(0, 300, tool_mastery=1.0), chunk(1, 100, overlap=900, tool_mastery=0.2)]
    assert verdict_of(chunks, "tool_mastery").value == pytest.approx(0.8)


def test_the_category_with_the_most_tokens_behind_it_wins() -> None:
    chunks = [
        chunk(0, 500, user_satisfaction="poor"),
        chunk(1, 300, user_satisfaction="good"),
        chunk(2, 300, user_satisfaction="good"),
    ]
    found = verdict_of(chunks, "user_satisfaction")
    assert (found.category, found.value) == ("good", 0.67)


def test_a_tie_goes_to_the_worse() -> None:
    for order in (("poor", "excellent"), ("excellent", "poor")):
        chunks = [chunk(i, 100, security_compliance=c) for i, c in enumerate(order)]
        assert verdict_of(chunks, "security_compliance").category == "poor"


def test_the_last_chunk_counts_double_for_task_completion_alone() -> None:
    chunks = [
        chunk(0, 150, task_completion="partial", user_satisfaction="partial"),
        chunk(1, 100, task_completion="complete", user_satisfaction="good"),
    ]
    assert verdict_of(chunks, "task_completion").category == "complete"
    assert verdict_of(chunks, "user_satisfaction").category == "partial"


def test_every_chunks_rationale_is_kept_with_its_part() -> None:
    rationale = verdict_of([chunk(0, 1), chunk(1, 1)], "tool_mastery").rationale
    assert "Part 1 of 2 (0.70): seen in turn 1" in rationale
    assert "Part 2 of 2" in rationale


def test_chunks_without_tokens_count_alike() -> None:
    chunks = [chunk(0, 0, tool_mastery=0.0), chunk(1, 0, tool_mastery=1.0)]
    assert verdict_of(chunks, "tool_mastery").value == pytest.approx(0.5)


def test_chunks_of_one_mind_agree_and_opposite_ones_do_not() -> None:
    worst: dict[str, Any] = {d.name: d.anchors[0].label or 0.0 for d in DIMENSIONS}
    best: dict[str, Any] = {d.name: d.anchors[-1].label or 1.0 for d in DIMENSIONS}
    same = aggregate([chunk(0, 10), chunk(1, 20), chunk(2, 5)])[1]
    split = aggregate([chunk(0, 10, **worst), chunk(1, 10, **best)])[1]
    assert same == pytest.approx(1)
    assert split is not None
    assert split < 0.15 < UNCERTAIN_BELOW


scores: st.SearchStrategy[dict[Any, Any]] = st.fixed_dictionaries(
    {
        d.name: st.sampled_from([a.label for a in d.anchors])
        if d.kind == "categorical"
        else st.floats(0, 1)
        for d in DIMENSIONS
    }
)
said = st.lists(st.tuples(scores, st.integers(0, 70_000)), min_size=1, max_size=8).map(
    lambda rows: [chunk(i, own, **given) for i, (given, own) in enumerate(rows)]
)


@settings(deadline=None)
@given(said)
def test_the_whole_lies_between_its_parts(chunks: list[ChunkVerdicts]) -> None:
    together, agreement = aggregate(chunks)
    for column, verdict in enumerate(together):
        values = [part.verdicts[column].value for part in chunks]
        assert min(values) <= verdict.value <= max(values)
    overall = calculate_overall_quality(together)
    assert 0 <= overall <= 1 + 1e-9
    assert agreement is None or 0 <= agreement <= 1


@settings(deadline=None)
@given(said, st.randoms())
def test_the_order_in_which_chunks_were_scored_does_not_matter(
    chunks: list[ChunkVerdicts], order: random.Random
) -> None:
    shuffled = list(chunks)
    order.shuffle(shuffled)
    assert aggregate(shuffled) == aggregate(chunks)

"""Aggregation: what the chunks of a session say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from debrief.scoring.dimensions import DIMENSIONS, Dimension
from debrief.scoring.model import ChunkVerdicts, Verdict

LAST_COUNTS = 2
"""How often the last chunk counts for ``task_completion``: the end shows whether it was done."""
UNCERTAIN_BELOW = 0.6
"""Chunk agreement under which a session's scores are uncertain."""

_LAST_DECIDES = "task_completion"


def aggregate(chunks: Sequence[ChunkVerdicts]) -> tuple[tuple[Verdict, ...], float | None]:
    """Return a session's six verdicts and how alike its chunks were.

    Numbers are averaged, weighted with each chunk's own tokens; of categories the one with the
    most tokens behind it wins, a tie going to the worse.

    The agreement is 1 minus twice the mean distance from the median, weighted in the same way,
    over the dimensions by their weights: 1 when all chunks say the same, 0 when they are split
    between worst and best; None for a single chunk.

    Args:
        chunks: one at least, each with a verdict on every dimension.
    """
    ordered = sorted(chunks, key=lambda chunk: chunk.index)
    said = [{verdict.dimension: verdict for verdict in chunk.verdicts} for chunk in ordered]
    columns = [(dimension, [by[dimension.name] for by in said]) for dimension in DIMENSIONS]
    verdicts = tuple(_together(dimension, column, ordered) for dimension, column in columns)
    if len(ordered) == 1:
        return verdicts, None
    agreement = math.fsum(
        dimension.weight * _agreement([v.value for v in column], _weights(ordered, dimension))
        for dimension, column in columns
    )
    return verdicts, min(1.0, max(0.0, agreement))


def is_uncertain(chunk_agreement: float | None) -> bool:
    """Return whether a session's chunks disagree so much that its scores should be looked at."""
    return chunk_agreement is not None and chunk_agreement < UNCERTAIN_BELOW


def _weights(chunks: Sequence[ChunkVerdicts], dimension: Dimension) -> list[int]:
    weights = [chunk.own_tokens for chunk in chunks]
    if not any(weights):
        weights = [1] * len(chunks)
    if dimension.name == _LAST_DECIDES:
        weights[-1] *= LAST_COUNTS
    return weights


def _together(
    dimension: Dimension, column: Sequence[Verdict], chunks: Sequence[ChunkVerdicts]
) -> Verdict:
    if len(column) == 1:
        return column[0]
    weights = _weights(chunks, dimension)
    rationale = "\n".join(
        f"Part {number} of {len(column)} ({verdict.category or format(verdict.value, '.2f')}):"
        f" {verdict.rationale}"
        for number, verdict in enumerate(column, 1)
    )
    if dimension.kind == "numeric":
        value = _mean([verdict.value for verdict in column], weights)
        return Verdict(dimension=dimension.name, value=value, rationale=rationale)
    votes: Counter[tuple[float, str]] = Counter()
    for verdict, weight in zip(column, weights, strict=True):
        votes[verdict.value, verdict.category or ""] += weight
    value, category = min(votes, key=lambda key: (-votes[key], key[0]))
    return Verdict(dimension=dimension.name, value=value, category=category, rationale=rationale)


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    total = math.fsum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)
    return min(max(values), max(min(values), total))


def _agreement(values: Sequence[float], weights: Sequence[int]) -> float:
    pairs = sorted(zip(values, weights, strict=True))
    so_far = accumulate(weight for _, weight in pairs)
    median = next(
        value for (value, _), sum_ in zip(pairs, so_far, strict=True) if 2 * sum_ >= sum(weights)
    )
    return 1 - 2 * _mean([abs(value - median) for value in values], weights)

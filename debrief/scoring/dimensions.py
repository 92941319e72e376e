"""The six dimensions, how chunks' answers on them are combined, and overall quality."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from debrief.content import folder
from debrief.errors import InputError
from debrief.scoring.llm_review import SessionReview
from debrief.scoring.model import ChunkScores, DimensionName, DimensionScore, SessionScores
from debrief.sessions.model import Evidence


class DimensionError(InputError, ValueError):
    """Scores that are none: a category outside the list, a dimension left out."""


class Anchor(Struct, frozen=True):
    """What a value of a dimension looks like in a session."""

    value: float
    text: str
    label: str = ""
    """The category; empty for a numeric dimension."""


class Dimension(Struct, frozen=True, kw_only=True):
    """One of the six scores."""

    name: DimensionName
    kind: Literal["categorical", "numeric"]
    weight: float
    question: str
    anchors: tuple[Anchor, ...]
    """From worst to best; of a categorical dimension these are all of its values."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    dimensions: tuple[Dimension, ...]


def _shipped() -> tuple[Dimension, ...]:
    text = (folder("prompts") / "dimensions.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_Table).dimensions


DIMENSIONS: tuple[Dimension, ...] = _shipped()
"""Of ``prompts/dimensions.toml``, in its order."""
BY_NAME: Mapping[str, Dimension] = {dimension.name: dimension for dimension in DIMENSIONS}

OVERALL = "overall_quality"
_ROUNDING = 1e-9

Score = DimensionScore | Mapping[str, object] | str | float | None


def dimension_score(
    name: str, score: object, rationale: str = "", evidence: tuple[Evidence, ...] = ()
) -> DimensionScore:
    """Return the score of a dimension after checking it against the table.

    Args:
        name: the dimension.
        score: a category's name for a categorical dimension, else a number from 0 to 1.
        rationale: why.
        evidence: where the session shows it.

    Raises:
        DimensionError: there is no such dimension, or the score is not one of it.
    """
    if name not in BY_NAME:
        raise DimensionError(name, "is not a dimension", f"Use one of {', '.join(BY_NAME)}.")
    dimension = BY_NAME[name]
    if dimension.kind == "categorical":
        if not isinstance(score, str):
            raise DimensionError(name, f"needs a category, not {score!r}")
        values = {anchor.label: anchor.value for anchor in dimension.anchors}
        if score not in values:
            move = f"Use {', '.join(values)}."
            raise DimensionError(name, f"has no category {score!r}", move)
        return DimensionScore(
            dimension=dimension.name,
            value=values[score],
            category=score,
            rationale=rationale,
            evidence=evidence,
        )
    if isinstance(score, bool) or not isinstance(score, int | float):
        raise DimensionError(name, f"needs a number from 0 to 1, not {score!r}")
    if not (math.isfinite(score) and 0 <= score <= 1):
        raise DimensionError(name, f"{score!r} is not from 0 to 1")
    return DimensionScore(
        dimension=dimension.name, value=float(score), rationale=rationale, evidence=evidence
    )


def calculate_overall_quality(
    verdicts: Iterable[DimensionScore] | Mapping[str, Score],
) -> float | None:
    """Return the weighted mean, from 0 to 1, of the dimensions that have a value; None without.

    Args:
        verdicts: one a dimension; or scores by dimension, each of these, a plain category or
            number, an object with a ``score``, or None where nothing speaks for or against.
            Names that are no dimension are left aside in the second form.

    Raises:
        DimensionError: a dimension is missing or given twice, or a score is not one of its own.
    """
    given = _by_name(verdicts)
    missing = [name for name in BY_NAME if name not in given]
    if missing:
        raise DimensionError("overall_quality", f"cannot do without {', '.join(missing)}")
    counted = [
        (dimension.weight, value)
        for dimension in DIMENSIONS
        if (value := given[dimension.name].value) is not None
    ]
    whole = math.fsum(weight for weight, _ in counted)
    return math.fsum(weight * value for weight, value in counted) / whole if counted else None


def overall_quality(
    dimension_scores: Sequence[DimensionScore], review: SessionReview
) -> float | None:
    """Return the weighted mean of the dimensions, bounded by the review's own quality.

    Security only lowers it: a session in which nothing risky was done is no better for that.

    Args:
        dimension_scores: one a dimension.
        review: of the session.

    Returns:
        From 0 to 1; None where no dimension but security has a value.

    Raises:
        DimensionError: as of ``calculate_overall_quality``.
    """
    whole = calculate_overall_quality(dimension_scores)
    plain = calculate_overall_quality(
        [
            replace(score, value=None) if score.dimension == "security_compliance" else score
            for score in dimension_scores
        ]
    )
    if whole is None or plain is None:
        return None
    return min(whole, plain, 1.0 if review.quality is None else review.quality)


def problem_of(row: SessionScores) -> str:
    """Return what is wrong with a row's scores; empty for a good row and for a failed one."""
    if row.status == "failed":
        return ""
    try:
        overall = overall_quality(row.dimension_scores, row.review) if row.review else None
    except DimensionError as error:
        return str(error)
    said = row.overall_quality
    if said is not None and (overall is None or abs(overall - said) > _ROUNDING):
        return f"overall_quality is {row.overall_quality}, its dimensions make {overall}"
    return ""


def _by_name(verdicts: Iterable[DimensionScore] | Mapping[str, Score]) -> dict[str, DimensionScore]:
    if isinstance(verdicts, Mapping):
        return {n: _checked(n, score) for n, score in verdicts.items() if n in BY_NAME}
    given = list(verdicts)
    for name, count in Counter(verdict.dimension for verdict in given).items():
        if count > 1:
            raise DimensionError(name, "is given twice")
    return {verdict.dimension: _checked(verdict.dimension, verdict) for verdict in given}


def _checked(name: str, score: Score) -> DimensionScore:
    if isinstance(score, Mapping):
        if "score" not in score:
            raise DimensionError(name, "has no score")
        return dimension_score(name, score["score"])
    if isinstance(score, DimensionScore):
        if score.value is None:
            return score
        plain = score.value if score.category is None else score.category
        checked = dimension_score(name, plain, score.rationale, score.evidence)
        if checked.value != score.value:
            raise DimensionError(name, f"{score.category} is not worth {score.value}")
        return checked
    if score is None:
        return DimensionScore(dimension=BY_NAME[name].name, value=None)
    return dimension_score(name, score)


UNCERTAIN_BELOW = 0.6
"""Chunk agreement under which a session's scores are uncertain."""


def aggregate(chunks: Sequence[ChunkScores]) -> tuple[tuple[DimensionScore, ...], float | None]:
    """Return a session's six scores and how alike its chunks were.

    Numbers are averaged, weighted with each chunk's own tokens. Completion is of the end: the
    last chunk that has a value decides it. Security is the worst seen. Satisfaction is what the
    most words of the person show, a tie going to the worse: a chunk counts with the length of what
    the person said in it, or with its own tokens where no chunk has any.

    The agreement is that of the dimension that the chunks are least alike in: 1 minus twice the
    mean distance from the median, in the weights above; 1 when all chunks say the same, 0 when
    they are split between worst and best. None when no dimension has two values.

    Args:
        chunks: one at least, each with a score of every dimension.
    """
    ordered = sorted(chunks, key=lambda chunk: chunk.index)
    said = [{verdict.dimension: verdict for verdict in chunk.dimension_scores} for chunk in ordered]
    tokens = [chunk.own_tokens for chunk in ordered]
    said_by_person = [chunk.person_characters for chunk in ordered]
    verdicts, alike = [], []
    for dimension in DIMENSIONS:
        column = [by[dimension.name] for by in said]
        is_of_person = dimension.name == "user_satisfaction" and any(said_by_person)
        weights = said_by_person if is_of_person else tokens
        verdicts.append(_together(dimension, column, weights))
        values, counted = _values(column, weights)
        if len(values) > 1:
            alike.append(_agreement(values, counted))
    return tuple(verdicts), min(alike, default=None)


def _together(
    dimension: Dimension, column: Sequence[DimensionScore], weights: Sequence[int]
) -> DimensionScore:
    if len(column) == 1:
        return column[0]
    valued = [verdict for verdict in column if verdict.value is not None]
    chosen = DimensionScore(dimension=dimension.name, value=None)
    if dimension.name == "task_completion" and valued:
        chosen = valued[-1]
    elif dimension.name == "security_compliance" and valued:
        chosen = min(valued, key=lambda verdict: verdict.value or 0.0)
    elif valued:
        chosen = _middle(dimension, column, weights)
    return replace(
        chosen,
        rationale="\n".join(
            f"Part {number} of {len(column)} ({verdict.shown}): {verdict.rationale}"
            for number, verdict in enumerate(column, 1)
        ),
        evidence=tuple(evidence for verdict in column for evidence in verdict.evidence),
    )


def _middle(
    dimension: Dimension, column: Sequence[DimensionScore], weights: Sequence[int]
) -> DimensionScore:
    """Return the mean of numbers, or the category with the most weight, a tie going to the worse.

    Args:
        dimension: of all verdicts.
        column: one of them at least has a value.
        weights: of each.
    """
    values, counted = _values(column, weights)
    if dimension.kind == "numeric":
        return DimensionScore(dimension=dimension.name, value=_mean(values, counted))
    votes: Counter[float] = Counter()
    for value, weight in zip(values, counted, strict=True):
        votes[value] += weight
    value = min(votes, key=lambda value: (-votes[value], value))
    return next(verdict for verdict in column if verdict.value == value)


def _values(
    column: Sequence[DimensionScore], weights: Sequence[int]
) -> tuple[list[float], list[int]]:
    """Return the values that there are, with their weights: equal ones if none has any."""
    pairs = [(v.value, w) for v, w in zip(column, weights, strict=True) if v.value is not None]
    found = [weight for _, weight in pairs]
    return [value for value, _ in pairs], found if any(found) else [1] * len(found)


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

"""The six dimensions, how they follow from a review, and overall quality."""

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
from debrief.scoring.llm_review import (
    STATES_SHOWN,
    ClaimReview,
    FrictionReview,
    SessionReview,
    ToolUse,
)
from debrief.scoring.model import ChunkScores, DimensionName, DimensionScore, SessionScores
from debrief.scoring.verdict import SessionVerdict, VerdictName
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
    dimension_scores: Sequence[DimensionScore], review: SessionReview, verdict: SessionVerdict
) -> float | None:
    """Return the weighted mean of the dimensions, bounded by the review's own quality.

    Security only lowers it: a session in which nothing risky was done is no better for that.

    Args:
        dimension_scores: one a dimension.
        review: of the session.
        verdict: on the session.

    Returns:
        From 0 to 1. None where the review gives no quality, or a failed check contradicts it:
        then its numbers are no more reliable than its verdict.

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
    if whole is None or plain is None or review.quality is None or verdict.is_contradicted:
        return None
    return min(whole, plain, review.quality)


def problem_of(row: SessionScores) -> str:
    """Return what is wrong with a row's scores; empty for a good row and for a failed one."""
    if row.status == "failed":
        return ""
    try:
        overall = (
            overall_quality(row.dimension_scores, row.review, row.verdict)
            if row.review is not None and row.verdict is not None
            else None
        )
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


_COMPLETION: Mapping[VerdictName, str] = {
    "complete_verified": "complete",
    "partial": "partial",
    "failed": "failed",
}
"""The category of a verdict; the others decide nothing about completion."""
_MOST_EVIDENCE = 5


def dimensions_of(review: SessionReview, verdict: VerdictName) -> tuple[DimensionScore, ...]:
    """Return the six dimensions that follow from a review, in the order of the table.

    Completion follows from the verdict, quality and efficiency from the review's own numbers,
    security from its incidents, and satisfaction from the person's words. Only tool use was asked
    by itself.

    Args:
        review: of the session or of a part of it.
        verdict: the review's, as far as signals let it stand.
    """
    unproven = [claim for claim in review.claims if claim.state != "supported"]
    tools = review.tools or ToolUse()
    return (
        _derived("task_completion", _COMPLETION.get(verdict), _states(review), review.proofs),
        _derived(
            "execution_quality", review.quality, *_reasons([*unproven, *review.frictions], "flaw")
        ),
        _derived("tool_mastery", tools.value, tools.what or _UNSAID, ()),
        _derived("resource_efficiency", review.effort, *_reasons(review.frictions, "friction")),
        _derived("security_compliance", *_security(review)),
        _derived("user_satisfaction", *_satisfaction(review)),
    )


_UNSAID = "The review does not say."


def _derived(
    name: str, score: str | float | None, rationale: str, evidence: Iterable[Evidence]
) -> DimensionScore:
    found = tuple(dict.fromkeys(evidence))[:_MOST_EVIDENCE]
    if score is None:
        return DimensionScore(
            dimension=BY_NAME[name].name, value=None, rationale=rationale, evidence=found
        )
    return dimension_score(name, score, rationale, found)


def _states(review: SessionReview) -> str:
    said = (f"{STATES_SHOWN[each.state]}: {each.asked}" for each in review.requests)
    return _sentence("; ".join(said)) or "The review names no request."


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def _reasons(
    found: Sequence[FrictionReview | ClaimReview], what: str
) -> tuple[str, list[Evidence]]:
    words = [
        f"{each.state} claim: “{each.quote}”"
        if isinstance(each, ClaimReview)
        else each.what or f"“{each.quote}”"
        for each in found
    ]
    why = " ".join(map(_sentence, words)) or f"The review names no {what}."
    return why, [each.place for each in found]


def _security(review: SessionReview) -> tuple[str, str, list[Evidence]]:
    """Return the category, why, and where. What was risky and not asked for is an incident."""
    if not review.incidents:
        return "adequate", "The review names no incident.", []
    said = (_sentence(each.what or f"“{each.quote}”") for each in review.incidents)
    worst = "poor" if any(each.harm for each in review.incidents) else "partial"
    return worst, " ".join(said), [each.place for each in review.incidents]


def _satisfaction(review: SessionReview) -> tuple[str | None, str, list[Evidence]]:
    """Return the category, why, and where; no category where the person said nothing of it."""
    count = Counter(words.says for words in review.person)
    approvals, corrections = count["approval"], count["correction"]
    places = [words.place for words in review.person]
    if not places:
        return None, "The person neither approves of the work nor corrects it.", []
    why = f"Words that approve: {approvals}; words that correct: {corrections}."
    if not corrections:
        return "excellent", why, places
    if not approvals and corrections > 1:
        return "poor", why, places
    return "good" if approvals > corrections else "partial", why, places


UNCERTAIN_BELOW = 0.6
"""Chunk agreement under which a session's scores are uncertain."""


def agreement_of(chunks: Sequence[ChunkScores]) -> float | None:
    """Return how alike the scores of a session's parts are, from 0 to 1.

    It is that of the dimension that they are least alike in: 1 minus twice the mean distance from
    the median, weighted with each part's own tokens. 1 means that all parts say the same, 0 that
    they are split between worst and best.

    Args:
        chunks: one at least, each with a score of every dimension.

    Returns:
        None where no dimension has two values.
    """
    tokens = [chunk.own_tokens for chunk in chunks]
    columns = zip(*(chunk.dimension_scores for chunk in chunks), strict=True)
    alike = []
    for column in columns:
        pairs = [(s.value, w) for s, w in zip(column, tokens, strict=True) if s.value is not None]
        if len(pairs) > 1:
            weights = [weight for _, weight in pairs]
            counted = weights if any(weights) else [1] * len(pairs)
            alike.append(_agreement([value for value, _ in pairs], counted))
    return min(alike, default=None)


def _agreement(values: Sequence[float], weights: Sequence[int]) -> float:
    pairs = sorted(zip(values, weights, strict=True))
    so_far = accumulate(weight for _, weight in pairs)
    median = next(
        value for (value, _), sum_ in zip(pairs, so_far, strict=True) if 2 * sum_ >= sum(weights)
    )
    far = math.fsum(abs(v - median) * w for v, w in zip(values, weights, strict=True))
    return 1 - 2 * far / sum(weights)

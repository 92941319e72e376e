"""Every score of a session as one list of entries, for a line's metadata.

One list rather than one a kind: a list without entries has no type that a loader could read off,
while this one always holds the overall quality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from debrief.judging.model import JudgeEvaluation
from debrief.rubrics.model import RubricEvaluation
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model import SessionScores
from debrief.training.model import ScoreEntry

_WEIGHTS = {dimension.name: dimension.weight for dimension in DIMENSIONS}


def score_entries(
    scores: SessionScores,
    judgements: Iterable[JudgeEvaluation],
    rubric_evaluations: Iterable[RubricEvaluation],
) -> tuple[ScoreEntry, ...]:
    """Return overall quality, dimensions, efficiencies, judges and rubrics, in this order.

    Failed judgements and rubric evaluations give no entry; a missing number is never a 0.
    """
    judged = sorted(judgements, key=lambda row: row.judge)
    rubrics = sorted(rubric_evaluations, key=lambda row: (row.score_name, row.rubric_key))
    return (*_of_the_scorer(scores), *_of_the_judges(judged), *_of_the_rubrics(rubrics))


def judges_mean(judgements: Iterable[JudgeEvaluation]) -> float | None:
    """Return the weighted mean of the judges' scores; None when one failed or there is none.

    A mean over fewer judges is another measure, so it is not given.
    """
    rows = list(judgements)
    total = sum(row.weight for row in rows)
    if total <= 0 or any(row.status != "ok" or row.score is None for row in rows):
        return None
    return sum(row.weight * (row.score or 0.0) for row in rows) / total


def _of_the_scorer(scores: SessionScores) -> Iterator[ScoreEntry]:
    if scores.overall_quality is not None:
        quality = float(scores.overall_quality)
        yield ScoreEntry(kind="overall", name="overall_quality", value=quality, model=scores.model)
    for verdict in scores.verdicts:
        yield ScoreEntry(
            kind="dimension",
            name=verdict.dimension,
            value=float(verdict.value),
            weight=float(_WEIGHTS[verdict.dimension]),
            category=verdict.category or "",
            model=scores.model,
            comment=verdict.rationale,
        )
    for name in ("token_efficiency", "user_turn_efficiency"):
        value: float | None = getattr(scores, name)
        if value is not None:
            yield ScoreEntry(kind="efficiency", name=name, value=float(value), maximum=0.0)


def _of_the_judges(rows: list[JudgeEvaluation]) -> Iterator[ScoreEntry]:
    mean = judges_mean(rows)
    if mean is not None:
        yield ScoreEntry(kind="judges", name="weighted_mean", value=mean)
    for row in rows:
        if row.status == "ok" and row.score is not None:
            yield ScoreEntry(
                kind="judge",
                name=row.judge,
                value=float(row.score),
                weight=float(row.weight),
                model=row.model,
                comment=row.feedback,
            )


def _of_the_rubrics(rows: list[RubricEvaluation]) -> Iterator[ScoreEntry]:
    for row in rows:
        if row.status == "ok" and row.score is not None:
            yield ScoreEntry(
                kind="rubric",
                name=f"{row.score_name}/{row.rubric_key}",
                value=float(row.score),
                minimum=1.0,
                maximum=5.0,
                model=row.model,
                comment=row.reasoning,
            )

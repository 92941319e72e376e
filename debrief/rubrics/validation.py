"""Validation: do rubrics still tell good sessions from bad ones that they were not mined from?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from debrief.rubrics.contrast import Effect, effect_of, ends_of, score_of
from debrief.rubrics.extraction import ExtractionOptions
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.scoring.model import SessionScores


class HeldOutEffect(Struct, frozen=True, kw_only=True):
    """How a rubric does on sessions that it was not mined from."""

    rubric_key: str
    sessions: int
    """Sessions that it was not mined from, with both a score and a rubric score."""
    effect: Effect | None
    """Best against worst of them; None when there are too few, or the scores are all alike."""


def held_out_effects(
    rubrics: Sequence[Rubric],
    evaluations: Iterable[RubricEvaluation],
    scores: Iterable[SessionScores],
    *,
    options: ExtractionOptions | None = None,
) -> list[HeldOutEffect]:
    """Measure each rubric on the sessions that it was not mined from, in the rubrics' order.

    Those sessions are ranked by the rubric's score name; the effect compares the 1–5 scores of
    the best with those of the worst, at the same share and minimum as extraction does.
    """
    options = options or ExtractionOptions()
    rows = list(scores)
    judged: dict[tuple[str, str], dict[str, int]] = {}
    for row in evaluations:
        if row.score is not None:
            key = (row.score_name, row.rubric_key)
            judged.setdefault(key, {})[row.session_id] = row.score
    return [_held_out(rubric, judged, rows, options) for rubric in rubrics]


def _held_out(
    rubric: Rubric,
    judged: dict[tuple[str, str], dict[str, int]],
    scores: Sequence[SessionScores],
    options: ExtractionOptions,
) -> HeldOutEffect:
    levels = judged.get((rubric.score_name, rubric.key), {})
    mined_from = set(rubric.sessions)
    found = (
        (row.session_id, score_of(row, rubric.score_name))
        for row in scores
        if row.session_id in levels and row.session_id not in mined_from
    )
    values = {id_: value for id_, value in found if value is not None}
    sides = ends_of(values, share=options.share, minimum=options.minimum)
    effect = None
    if sides is not None:
        effect = effect_of([levels[i] for i in sides.best], [levels[i] for i in sides.worst])
    return HeldOutEffect(rubric_key=rubric.key, sessions=len(values), effect=effect)

"""What was said of one session: scores, judges, rubrics and labels, as reasons with places."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.evidence import Evidence
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import EVALUATIONS, RUBRICS, Rubric, RubricEvaluation
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.model import SCORE_NAMES, SessionScores
from debrief.scoring.model_scorer import cited_turns

Group = Literal["success", "dimension", "judge", "rubric"]
_QUOTED = re.compile(r"\bturn (\d{1,6}): “([^”]{1,400})”")
_LEAST, _RANGE = 1, 4
"""Of a rubric's scale from 1 to 5: its lowest score, and how far it goes."""


class ShownReason(Struct, frozen=True, kw_only=True):
    """Why a session got a score, or what speaks for or against its success."""

    group: Group
    name: str
    value: float | None = None
    """From 0 to 1, whatever the scale is; None without a score."""
    shown: str = ""
    """The score on its own scale."""
    weight: float | None = None
    text: str = ""
    by: str = ""
    evidence: tuple[Evidence, ...] = ()
    failure: str = ""
    """Why there is no score; empty when there is one."""
    id: str = ""
    """Of the element that shows it."""


class Assessment(Struct, frozen=True, kw_only=True):
    """All that was said of one session."""

    scores: tuple[SessionScores, ...] = ()
    """One for each scorer; a model's first."""
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubrics: tuple[tuple[RubricEvaluation, str], ...] = ()
    """With the rubric's name."""
    labels: tuple[str, ...] = ()
    """What is known of the session from outside, in words."""

    @property
    def main(self) -> SessionScores | None:
        """Return the scores that are shown first; None for a session that nobody scored."""
        return next(iter(self.scores), None)


def read_assessment(
    lake: Lake, week: str, session_id: str, labels: Iterable[str] = ()
) -> Assessment:
    """Read what a lake's tables say of one session.

    Args:
        lake: where they are.
        week: the session's.
        session_id: whose.
        labels: what is known of it from outside, in words.
    """
    only = ("session_id", {session_id})
    scores = lake.read("session_scores", week, SessionScores, only)
    judgements = lake.read("judge_evaluations", week, JudgeEvaluation, only)
    held = list(lake.read(EVALUATIONS, week, RubricEvaluation, only))
    names = {
        (name, rubric.key): rubric.name
        for name in (SCORE_NAMES if held else ())
        for rubric in lake.read(RUBRICS, name, Rubric)
    }
    return Assessment(
        scores=tuple(
            sorted(scores, key=lambda row: (row.status != "ok", row.model == "offline", row.model))
        ),
        judgements=tuple(sorted(judgements, key=lambda row: (row.model == "offline", row.judge))),
        rubrics=tuple(
            (row, names.get((row.score_name, row.rubric_key), row.rubric_key)) for row in held
        ),
        labels=tuple(labels),
    )


def reasons_of(assessment: Assessment) -> tuple[ShownReason, ...]:
    """Return each reason, in the order in which pages show them."""
    found = [
        *(reason for row in assessment.scores for reason in _of_scores(row)),
        *(_of_judge(row) for row in assessment.judgements),
        *(_of_rubric(row, name) for row, name in assessment.rubrics if row.status != "no_occasion"),
    ]
    return tuple(replace(reason, id=f"reason-{n}") for n, reason in enumerate(found, 1))


def _of_scores(row: SessionScores) -> Iterator[ShownReason]:
    if row.success is not None:
        for reason in row.success.reasons:
            side = "for" if reason.effect > 0 else "against"
            text = f"{reason.text[:1].upper()}{reason.text[1:]}."
            yield ShownReason(
                group="success",
                name=f"{side} success",
                shown=side,
                text=text,
                by=row.model,
                evidence=reason.evidence,
            )
    for verdict in row.verdicts:
        shown = verdict.shown
        if verdict.category and verdict.value is not None:
            shown = f"{verdict.category} {verdict.value:.2f}"
        yield ShownReason(
            group="dimension",
            name=verdict.dimension.replace("_", " "),
            value=verdict.value,
            shown=f"{shown} ± {verdict.spread:.2f}" if verdict.spread is not None else shown,
            weight=BY_NAME[verdict.dimension].weight,
            text=verdict.rationale,
            by=row.model,
            evidence=verdict.evidence or tuple(_cited(verdict.rationale)),
        )


def _of_judge(row: JudgeEvaluation) -> ShownReason:
    shown = "failed" if row.score is None else f"{row.score:.2f}"
    return ShownReason(
        group="judge",
        name=row.judge,
        value=row.score,
        shown=f"{shown} ± {row.spread:.2f}" if row.spread is not None else shown,
        weight=row.weight,
        text=row.feedback,
        by=row.answered_by or row.model,
        evidence=row.evidence or tuple(_cited(row.feedback)),
        failure=row.failure,
    )


def _of_rubric(row: RubricEvaluation, name: str) -> ShownReason:
    return ShownReason(
        group="rubric",
        name=name,
        value=None if row.score is None else (row.score - _LEAST) / _RANGE,
        shown="failed" if row.score is None else f"{row.score} of 5",
        text=row.reasoning,
        by=row.model,
        evidence=tuple(_cited(row.reasoning)),
        failure=row.failure,
    )


def _cited(text: str) -> Sequence[Evidence]:
    """Return the turns that a text cites, with the words that it quotes beside them."""
    quoted = [Evidence(int(turn), "", quote) for turn, quote in _QUOTED.findall(text)]
    turns = {place.turn for place in quoted}
    rest = (turn for turn in dict.fromkeys(cited_turns(text)) if turn not in turns)
    return [*quoted, *(Evidence(turn) for turn in rest)]

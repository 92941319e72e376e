"""Scores, verdict, reasons and warnings of a session, prepared once for every output.

The verdict, what a model read, dimensions, judges and rubrics become reasons: a name, what is shown
of the value, why, and the evidence. ``debrief score``, ``debrief show``, the session's page and the
saved file lay them out, each in its own way, and add no words of their own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from debrief.execution.model import Execution
from debrief.execution.store import execution_of
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.fencing import LOOK_FIRST
from debrief.outcomes.store import Label
from debrief.rubrics.calibrating import UNCALIBRATED, Calibrations, calibrations_in
from debrief.rubrics.model import EVALUATIONS, RUBRICS, Rubric, RubricEvaluation
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.llm_review import (
    STATES_SHOWN,
    Attitude,
    ClaimState,
    RequestState,
    SessionReview,
)
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_judgements, in_order
from debrief.scoring.second_opinion import UNSURE_SHOWN
from debrief.scoring.shown import mean_shown, parts_shown, reason_shown, value_shown
from debrief.scoring.verdict import VERDICT_LABELS, SessionVerdict, VerdictName, basis_text
from debrief.sessions.model import Evidence
from debrief.troubles.model import EVENTS, KINDS_SHOWN, TroubleEvent
from debrief.troubles.session_troubles import SessionTrouble, session_troubles

Group = Literal[
    "verdict",
    "other",
    "request",
    "claim",
    "incident",
    "trouble",
    "person",
    "again",
    "dimension",
    "judge",
    "rubric",
]
"""``other``: the verdict of a scorer that does not speak for the session. ``trouble``: as a model
read it. ``again``: what went wrong at least twice, found without a model."""
OF_READING: Final[Collection[Group]] = (
    "other",
    "request",
    "claim",
    "incident",
    "trouble",
    "person",
    "again",
)
"""What comes between the verdict and the dimensions."""
Tone = Literal["good", "calm", "fair", "bad", "none", ""]
_LEAST, _RANGE = 1, 4
"""Of a rubric's scale from 1 to 5: its lowest score, and how far it goes."""


VERDICT_TONES: Mapping[VerdictName, Tone] = {
    "complete_verified": "good",
    "complete_unverified": "calm",
    "partial": "fair",
    "failed": "bad",
    "undetermined": "none",
}
"""How each verdict is coloured."""
_STATE_TONES: Mapping[RequestState, Tone] = {
    "done_seen": "good",
    "done_unseen": "calm",
    "partial": "fair",
    "not": "bad",
    "withdrawn": "none",
}
_CLAIM_TONES: Mapping[ClaimState, Tone] = {
    "supported": "good",
    "unsupported": "fair",
    "contradicted": "bad",
}
_ATTITUDES: Mapping[Attitude, tuple[str, Tone]] = {
    "approval": ("approves", "good"),
    "correction": ("corrects", "fair"),
}
_SUBJECTS = 3
"""How many things that went wrong are named."""
_NOT_JUDGED = "not judged"
_NOT_ASKED = "The session changed nothing, so this judge was not asked."
_UNSEEN = "The session does not show what it asks for."
_UNCERTAIN = "Uncertain: the parts of the session disagree; look at their rationales."


class ShownReason(Struct, frozen=True, kw_only=True):
    """Why a session got a verdict or a score."""

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
    tone: Tone = ""
    """How what is shown is coloured, where that is no score."""
    turn: int = 0
    """Of a request, the turn that asks for it; 0 where that is not known."""
    rule: str = ""
    """Of a trouble, the line for a prompt file that would stop it."""
    is_second: bool = False
    """Somebody else speaks for the session on this."""
    id: str = ""
    """Of the element that shows it."""


class ShownFigure(Struct, frozen=True):
    """A number of a whole session, with its name."""

    name: str
    shown: str


class Assessment(Struct, frozen=True, kw_only=True):
    """All that was said of one session."""

    scores: tuple[SessionScores, ...] = ()
    """One for each scorer; the one that speaks for the session first."""
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubrics: tuple[tuple[RubricEvaluation, str], ...] = ()
    """With the rubric's name."""
    labels: tuple[str, ...] = ()
    """What is known of the session from outside, in words."""
    troubles: tuple[SessionTrouble, ...] = ()
    """What went wrong in it at least twice."""
    execution: Execution | None = None
    """What running its checks says; None where nobody ran them."""
    calibrations: Calibrations = UNCALIBRATED
    """That numbers are shown by, beside the raw ones."""

    @property
    def main(self) -> SessionScores | None:
        """Return the scores that are shown first; None for a session that nobody scored."""
        return next(iter(self.scores), None)

    @property
    def verdict(self) -> SessionVerdict | None:
        """Return whether what was asked was done; None where nobody looked."""
        return next((row.verdict for row in self.scores if row.verdict is not None), None)

    @property
    def verdict_tone(self) -> Tone:
        """Return how the verdict is coloured."""
        return "" if self.verdict is None else VERDICT_TONES[self.verdict.verdict]

    @property
    def reading(self) -> SessionReview | None:
        """Return what the model that speaks for the session read in it; None where none did."""
        return None if self.main is None else self.main.review

    @property
    def reading_shown(self) -> str:
        """Return how sure the model is, and its two numbers; empty without a reading."""
        read = self.reading
        if read is None:
            return ""
        sure = [f"confidence {read.confidence}"] if read.confidence is not None else []
        numbers = (("quality", read.quality), ("effort", read.effort))
        found = [f"{name} {value:.2f}" for name, value in numbers if value is not None]
        return ", ".join([*sure, *found])

    @property
    def mean_shown(self) -> str:
        """Return the mean of the dimensions, marked where some have no value, with the calibrated
        number before it where there is one; a dash and why where there is none."""
        if self.main is None:
            return "–"
        known, raw = self.calibrations.of_quality(self.main), mean_shown(self.main)
        if known is None or self.main.overall_quality is None:
            return raw
        worth = known.worth(self.main.overall_quality)
        return f"{worth:.2f}, calibrated by {known.labelled} labels; raw {raw}"

    @property
    def figures(self) -> tuple[ShownFigure, ...]:
        """Return the numbers that hold for the whole session, as far as they are known."""
        row = self.main
        if row is None or row.status != "ok":
            return ()
        lines = ("lasting lines per 1,000 tokens", "lasting lines per turn")
        figures = (
            ("agreement of the parts", row.chunk_agreement, ".2f"),
            (lines[0], row.token_efficiency, ".1f"),
            (lines[1], row.user_turn_efficiency, ".1f"),
            ("cost of scoring, US dollars", row.cost_usd or None, ".4f"),
        )
        return (
            ShownFigure("mean of the dimensions", f"{self.mean_shown}, scored by {row.model}"),
            *(ShownFigure("parts", parts) for parts in [parts_shown(row)] if parts),
            *(
                ShownFigure(name, f"{value:{form}}")
                for name, value, form in figures
                if value is not None
            ),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return what to know of every score; empty as a rule."""
        flags = (
            *(row.injection_suspected for row in self.scores),
            *(row.injection_suspected for row in self.judgements),
            *(row.injection_suspected for row, _ in self.rubrics),
        )
        row = self.main
        found = [LOOK_FIRST] if any(flags) else []
        if row is not None:
            found += [_UNCERTAIN] if row.uncertain else []
            found += [f"No second opinion: {row.second_failure}"] if row.second_failure else []
        return tuple(found)

    @property
    def first_opinion(self) -> str:
        """Return who scored the session before the one who speaks for it, and why that was not
        enough; empty where nobody did."""
        first = None if self.main is None else self.main.first_opinion
        if first is None:
            return ""
        verdict = f"; its verdict: {VERDICT_LABELS[first.verdict]}" if first.verdict else ""
        return f"{first.model} read it first and was unsure: {UNSURE_SHOWN[first.reason]}{verdict}"


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
        for name in (lake.partitions(RUBRICS) if held else ())
        for rubric in lake.read(RUBRICS, name, Rubric)
    }
    return Assessment(
        scores=tuple(in_order(scores)),
        judgements=tuple(sorted(in_order(judgements), key=lambda row: row.judge)),
        rubrics=tuple(
            (row, names.get((row.score_name, row.rubric_key), row.rubric_key)) for row in held
        ),
        labels=tuple(labels),
        troubles=tuple(session_troubles(lake.read(EVENTS, week, TroubleEvent, only))),
        execution=execution_of(lake, week, session_id),
        calibrations=calibrations_in(lake),
    )


def label_words(labels: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return labels in words: of each its name, its value, its source and who gave it."""
    return tuple(
        f"{name}: {value} ({', '.join(filter(None, (source, who)))})"
        for name, value, source, who in labels
    )


def labels_shown(labels: Iterable[Label]) -> tuple[str, ...]:
    """Return the labels of a lake in words."""
    return label_words(
        (label.name, label.value, label.source, label.rater or label.detail or label.place)
        for label in labels
    )


def reasons_of(assessment: Assessment) -> tuple[ShownReason, ...]:
    """Return each reason, in the order in which pages show them."""
    heard = list(effective_judgements(assessment.judgements))
    found = [
        *(_of_verdict(verdict) for verdict in [assessment.verdict] if verdict is not None),
        *_of_others(assessment),
        *(_of_reading(assessment.review) if assessment.review is not None else ()),
        *map(_of_trouble, assessment.troubles),
        *(
            replace(reason, is_second=row is not assessment.main)
            for row in assessment.scores
            for reason in _of_scores(row, assessment.calibrations.applied(row))
        ),
        *(
            replace(
                _of_judge(row, assessment.calibrations.applied_to_judgement(row)),
                is_second=all(row is not evaluation for evaluation in heard),
            )
            for row in assessment.judgements
        ),
        *(_of_rubric(row, name) for row, name in assessment.rubrics if row.status != "no_occasion"),
    ]
    return tuple(replace(reason, id=f"reason-{n}") for n, reason in enumerate(found, 1))


def _of_verdict(verdict: SessionVerdict) -> ShownReason:
    return ShownReason(
        group="verdict",
        name="verdict",
        shown=verdict.label,
        text=basis_text(verdict),
        evidence=verdict.evidence,
    )


def _of_others(assessment: Assessment) -> Iterator[ShownReason]:
    """Yield each verdict beside the one that counts: what other models and the rules say, and,
    where an outcome decided, what the model read."""
    for row in assessment.scores:
        said = row.verdict
        if row.review is not None and (said is None or said.basis != "model"):
            said = SessionVerdict(
                verdict=row.review.verdict,
                basis="model",
                source=row.model,
                evidence=row.review.proofs,
            )
        if said is not None and said.basis != "outcome" and said != assessment.verdict:
            yield ShownReason(
                group="other",
                name=f"verdict by {row.model}",
                shown=said.shown,
                tone=VERDICT_TONES[said.verdict],
                text=basis_text(said),
                by=row.model,
                evidence=said.evidence,
            )


def _of_reading(reading: SessionReview) -> Iterator[ShownReason]:
    for number, request in enumerate(reading.requests, 1):
        yield ShownReason(
            group="request",
            name=f"request {number}",
            shown=STATES_SHOWN[request.state],
            tone=_STATE_TONES[request.state],
            text=request.asked,
            turn=request.turn,
            evidence=tuple(filter(None, [request.proof])),
        )
    for claim in reading.claims:
        yield ShownReason(
            group="claim",
            name="claim",
            shown=claim.state,
            tone=_CLAIM_TONES[claim.state],
            text=f"“{claim.quote}”" if claim.quote else "",
            evidence=(claim.place, *filter(None, [claim.proof])),
        )
    for incident in reading.incidents:
        yield ShownReason(
            group="incident", name="incident", text=incident.what, evidence=(incident.place,)
        )
    for trouble in reading.troubles:
        yield ShownReason(
            group="trouble",
            name=trouble.kind.replace("_", " "),
            text=trouble.what,
            rule=trouble.rule,
            evidence=(trouble.place,),
        )
    for words in reading.person:
        shown, tone = _ATTITUDES[words.says]
        yield ShownReason(
            group="person",
            name="the person",
            shown=shown,
            tone=tone,
            text=f"“{words.quote}”" if words.quote else "",
            evidence=(words.place,),
        )


def _of_trouble(trouble: SessionTrouble) -> ShownReason:
    listed, more = trouble.subjects[:_SUBJECTS], len(trouble.subjects) - _SUBJECTS
    return ShownReason(
        group="again",
        name=KINDS_SHOWN[trouble.kind],
        shown=counted(len(trouble.events), "time"),
        tone="fair",
        text="; ".join(
            [*listed, *([f"{more} more"] if more > 0 else []), ", ".join(trouble.cost)]
        ).removesuffix("; "),
        evidence=tuple(event.evidence for event in trouble.events),
    )


def _of_scores(row: SessionScores, calibrated: SessionScores) -> Iterator[ShownReason]:
    for verdict, worth in zip(row.dimension_scores, calibrated.verdicts, strict=True):
        shown = value_shown(verdict)
        shown = f"{shown} ± {verdict.spread:.2f}" if verdict.spread is not None else shown
        yield ShownReason(
            group="dimension",
            name=verdict.dimension.replace("_", " "),
            value=worth.value,
            shown=_beside_raw(worth.value, verdict.value, shown),
            weight=BY_NAME[verdict.dimension].weight,
            text=reason_shown(verdict),
            by=row.model,
            evidence=verdict.evidence,
        )


def _beside_raw(calibrated: float | None, raw: float | None, shown: str) -> str:
    """Return a calibrated number with the raw one, where they differ."""
    return shown if calibrated is None or calibrated == raw else f"{calibrated:.2f} (raw {shown})"


def _of_judge(row: JudgeEvaluation, calibrated: JudgeEvaluation) -> ShownReason:
    nothing = "failed" if row.status == "failed" else _NOT_JUDGED
    shown = nothing if row.score is None else f"{row.score:.2f}"
    text = row.feedback
    if row.score is None and row.status != "failed":
        text = _NOT_ASKED if row.status == "no_change" else row.feedback or _UNSEEN
    shown = f"{shown} ± {row.spread:.2f}" if row.spread is not None else shown
    return ShownReason(
        group="judge",
        name=row.judge,
        value=calibrated.score,
        shown=_beside_raw(calibrated.score, row.score, shown),
        weight=row.weight,
        text=text,
        by=row.answered_by or row.model,
        evidence=row.evidence,
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
        evidence=row.evidence,
        failure=row.failure,
    )

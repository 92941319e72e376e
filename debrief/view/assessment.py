"""Verdict, signals, review, reasons and warnings of a session, prepared once for every output.

The verdict, signals, what a review says, dimensions, judges and rubrics become reasons: a name,
what is shown of the value, why, and the evidence. ``debrief score``, ``debrief show``, the
session's page and the saved file lay them out, each in its own way, and add no words of their own.
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
from debrief.outcomes.verdicts import SCORES, verdicts_in
from debrief.questions.schema import answers_by_question, facets_in, questions_in
from debrief.rubrics.model import EVALUATIONS, RUBRICS, Rubric, RubricEvaluation
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.llm_review import (
    STATES_SHOWN,
    Attitude,
    ClaimState,
    RequestState,
    SessionReview,
)
from debrief.scoring.model import Facet, SessionScores
from debrief.scoring.precedence import effective_judgements, in_order
from debrief.scoring.shown import parts_shown, reason_shown, value_shown
from debrief.scoring.verdict import NOT_REVIEWED, SessionVerdict, VerdictName, basis_text
from debrief.sessions.model import Evidence
from debrief.signals.display import (
    change_sentence,
    check_sentence,
    ending_sentence,
    event_sentence,
)
from debrief.signals.schema import OF_OTHER_LINES, VERIFYING, CheckSignal, SessionSignals
from debrief.signals.schema import TABLE as SIGNALS
from debrief.view.wording import EVENT_LABELS, WORK_LABELS, objection_shown

Group = Literal[
    "verdict",
    "event",
    "check",
    "work",
    "other",
    "request",
    "claim",
    "incident",
    "friction",
    "question",
    "person",
    "dimension",
    "judge",
    "rubric",
]
"""``event``: a signal that a person would want to look at. ``work``: what was changed, and how it
ends. ``other``: a verdict that does not count for the session. ``friction``: what cost the work,
as a review says."""
OF_SIGNALS: Final[Collection[Group]] = ("event", "check", "work")
"""What rules see, which comes after the verdict."""
OF_READING: Final[Collection[Group]] = (
    "other",
    "request",
    "claim",
    "incident",
    "friction",
    "question",
    "person",
)
"""What comes between the signals and the dimensions."""
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
    "declined": "none",
    "withdrawn": "none",
    "unclear": "none",
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
    instead: str = ""
    """Of friction, what the agent should have done."""
    is_second: bool = False
    """Something else counts for the session: another reviewer, or a later check."""
    id: str = ""
    """Of the element that shows it."""


class ShownFigure(Struct, frozen=True):
    """A number of a whole session, with its name."""

    name: str
    shown: str


class Assessment(Struct, frozen=True, kw_only=True):
    """All that was said of one session."""

    verdict: SessionVerdict | None = None
    """The one that counts; None where nobody gave one."""
    signals: SessionSignals | None = None
    """What rules see in it; None where nobody has looked."""
    scores: tuple[SessionScores, ...] = ()
    """One for each reviewer; the one that counts first."""
    judgements: tuple[JudgeEvaluation, ...] = ()
    rubrics: tuple[tuple[RubricEvaluation, str], ...] = ()
    """With the rubric's name."""
    labels: tuple[str, ...] = ()
    """What is known of the session from outside, in words."""
    facets: tuple[tuple[Facet, str], ...] = ()
    """What it answers to kept questions, each with the question's text."""
    execution: Execution | None = None
    """What running its checks says; None where nobody ran them."""

    @property
    def main(self) -> SessionScores | None:
        """Return the scores that are shown first; None for a session that nobody reviewed."""
        return next(iter(self.scores), None)

    @property
    def verdict_label(self) -> str:
        """Return the verdict in a few words; ``not reviewed`` where nobody gave one."""
        return NOT_REVIEWED if self.verdict is None else self.verdict.label

    @property
    def verdict_tone(self) -> Tone:
        """Return how the verdict is coloured."""
        return "none" if self.verdict is None else VERDICT_TONES[self.verdict.verdict]

    @property
    def objection(self) -> str:
        """Return what a signal says against the verdict; empty where its word stands."""
        last_check = self.signals.last_check if self.signals is not None else None
        return "" if self.verdict is None else objection_shown(self.verdict, last_check)

    @property
    def review(self) -> SessionReview | None:
        """Return the review of the reviewer that counts; None where none reviewed it."""
        return None if self.main is None else self.main.review

    @property
    def review_shown(self) -> str:
        """Return how sure the reviewer is, and its two numbers; empty without a review."""
        read = self.review
        if read is None:
            return ""
        sure = [f"confidence {read.confidence}"] if read.confidence is not None else []
        numbers = (("quality", read.quality), ("effort", read.effort))
        found = [f"{name} {value:.2f}" for name, value in numbers if value is not None]
        return ", ".join([*sure, *found])

    @property
    def figures(self) -> tuple[ShownFigure, ...]:
        """Return the numbers that hold for the whole session, as far as they are known."""
        row, seen = self.main, self.signals
        found: list[ShownFigure] = []
        if seen is not None:
            calls = counted(seen.calls, "call")
            calls += f", {seen.failed_calls} of them failed" * bool(seen.failed_calls)
            found = [ShownFigure("lines kept", f"{seen.lines_kept:,}"), ShownFigure("calls", calls)]
        if row is not None and row.status == "ok":
            known = (
                ("parts", parts_shown(row)),
                ("agreement of the parts", _two_digits(row.chunk_agreement)),
                ("cost of the review", f"${row.cost_usd:.4f}" if row.cost_usd else ""),
            )
            found += [ShownFigure(name, shown) for name, shown in known if shown]
        return tuple(found)

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
        return tuple(found)


def _two_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


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
    scores = lake.read(SCORES, week, SessionScores, only)
    judgements = lake.read("judge_evaluations", week, JudgeEvaluation, only)
    held = list(lake.read(EVALUATIONS, week, RubricEvaluation, only))
    names = {
        (name, rubric.key): rubric.name
        for name in (lake.partitions(RUBRICS) if held else ())
        for rubric in lake.read(RUBRICS, name, Rubric)
    }
    return Assessment(
        verdict=verdicts_in(lake, [week]).get(session_id),
        signals=next(lake.read(SIGNALS, week, SessionSignals, only), None),
        scores=tuple(in_order(scores)),
        judgements=tuple(sorted(in_order(judgements), key=lambda row: row.judge)),
        rubrics=tuple(
            (row, names.get((row.score_name, row.rubric_key), row.rubric_key)) for row in held
        ),
        labels=tuple(labels),
        facets=_facets_of(lake, week, session_id),
        execution=execution_of(lake, week, session_id),
    )


def _facets_of(lake: Lake, week: str, session_id: str) -> tuple[tuple[Facet, str], ...]:
    """Return what a session answers to kept questions, each with the question's text."""
    asked = {question.id: question.text for question in questions_in(lake)}
    if not asked:
        return ()
    answers = answers_by_question(facets_in(lake, [week]))
    return tuple(
        (answers[id_][session_id], text)
        for id_, text in asked.items()
        if session_id in answers.get(id_, {})
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
        *(_of_signals(assessment.signals) if assessment.signals is not None else ()),
        *_of_others(assessment),
        *(_of_review(assessment.review) if assessment.review is not None else ()),
        *(
            replace(reason, is_second=row is not assessment.main)
            for row in assessment.scores
            for reason in _of_scores(row)
        ),
        *(
            replace(_of_judge(row), is_second=all(row is not evaluation for evaluation in heard))
            for row in assessment.judgements
        ),
        *(_of_rubric(row, name) for row, name in assessment.rubrics),
        *(_of_facet(facet, asked) for facet, asked in assessment.facets),
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


def _of_signals(signals: SessionSignals) -> Iterator[ShownReason]:
    for event in signals.events:
        if event.kind in OF_OTHER_LINES:
            continue
        yield ShownReason(
            group="event",
            name=EVENT_LABELS[event.kind],
            shown=counted(event.count, "time") if event.count > 1 else "",
            tone="fair",
            text=event_sentence(event),
            evidence=event.evidence,
        )
    for check in signals.checks:
        yield ShownReason(
            group="check",
            name=check.tool + (f" in {check.target}" if check.target else ""),
            shown=_outcome_shown(check),
            tone=_outcome_tone(check),
            text=check_sentence(check),
            evidence=(check.evidence,),
            is_second=not check.covers_change,
        )
    yield ShownReason(
        group="work",
        name=WORK_LABELS[signals.work],
        text=change_sentence(signals.change),
        evidence=signals.change.commits,
    )
    yield ShownReason(
        group="work",
        name="end",
        text=ending_sentence(signals),
        evidence=(signals.end,) if signals.end is not None else (),
    )


def _outcome_shown(check: CheckSignal) -> str:
    return "outcome unknown" if check.passed is None else "passed" if check.passed else "failed"


def _outcome_tone(check: CheckSignal) -> Tone:
    """Return how a check is coloured: only one that shows that work holds is green."""
    if check.passed is None or (check.passed and not check.covers_change):
        return "none"
    if not check.passed:
        return "bad"
    return "good" if check.worth in VERIFYING else "calm"


def _of_others(assessment: Assessment) -> Iterator[ShownReason]:
    """Yield the verdict of each review that does not count: a person's or an outcome's does, or
    that of another model."""
    for row in assessment.scores:
        said = row.verdict
        if said is not None and said != assessment.verdict:
            yield ShownReason(
                group="other",
                name=f"review by {row.model}",
                shown=said.label,
                tone=VERDICT_TONES[said.verdict],
                text=basis_text(said),
                by=row.model,
                evidence=said.evidence,
            )


def _of_review(review: SessionReview) -> Iterator[ShownReason]:
    for number, request in enumerate(review.requests, 1):
        yield ShownReason(
            group="request",
            name=f"request {number}",
            shown=STATES_SHOWN[request.state],
            tone=_STATE_TONES[request.state],
            text=request.asked,
            turn=request.turn,
            evidence=tuple(filter(None, [request.proof])),
        )
    for claim in review.claims:
        yield ShownReason(
            group="claim",
            name="claim",
            shown=claim.state,
            tone=_CLAIM_TONES[claim.state],
            text=f"“{claim.quote}”" if claim.quote else "",
            evidence=(claim.place, *filter(None, [claim.proof])),
        )
    for incident in review.incidents:
        yield ShownReason(
            group="incident",
            name="incident",
            shown="harm" if incident.harm else "",
            tone="bad",
            text=incident.what,
            evidence=(incident.place,),
        )
    for friction in review.frictions:
        yield ShownReason(
            group="friction",
            name="friction",
            text=friction.what,
            instead=friction.instead,
            evidence=(friction.place,),
        )
    for words in review.person:
        shown, tone = _ATTITUDES[words.says]
        yield ShownReason(
            group="person",
            name="the person",
            shown=shown,
            tone=tone,
            text=f"“{words.quote}”" if words.quote else "",
            evidence=(words.place,),
        )


def _of_facet(facet: Facet, asked: str) -> ShownReason:
    return ShownReason(
        group="question",
        name=asked,
        shown="" if facet.found else "no",
        text=facet.answer,
        by=facet.model,
        evidence=facet.places,
    )


def _of_scores(row: SessionScores) -> Iterator[ShownReason]:
    for score in row.dimension_scores:
        yield ShownReason(
            group="dimension",
            name=score.dimension.replace("_", " "),
            value=score.value,
            shown=value_shown(score),
            weight=BY_NAME[score.dimension].weight,
            text=reason_shown(score),
            by=row.model,
            evidence=score.evidence,
        )


def _of_judge(row: JudgeEvaluation) -> ShownReason:
    nothing = "failed" if row.status == "failed" else _NOT_JUDGED
    text = row.feedback
    if row.score is None and row.status != "failed":
        text = _NOT_ASKED if row.status == "no_change" else row.feedback or _UNSEEN
    return ShownReason(
        group="judge",
        name=row.judge,
        value=row.score,
        shown=nothing if row.score is None else f"{row.score:.2f}",
        weight=row.weight,
        text=text,
        by=row.model,
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

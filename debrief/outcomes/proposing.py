"""Labels that a model proposes: kept apart until a person confirms or changes them.

A person answers each on "Label next". What they say is a label as any other; beside it the proposal
shows how often the model was right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, Literal

from msgspec import Struct

from debrief.judging.model import JudgeEvaluation
from debrief.keys import slugify
from debrief.lake import Lake
from debrief.outcomes.giving import worth_of
from debrief.outcomes.store import PEOPLE, SUCCESS, Label, Roll, all_labels, labelled_sessions
from debrief.scoring.model import SessionScores
from debrief.scoring.llm_review import Confidence, SessionReview
from debrief.scoring.precedence import in_order
from debrief.scoring.verdict import VerdictName
from debrief.sessions.model import Evidence, Session
from debrief.sessions.store import SESSIONS_TABLE

PROPOSED = "proposed_labels"
"""A table with a partition for each model, replaced session by session."""
Said = Literal["good", "bad", "unsure"]
_SAID: Final[Mapping[VerdictName, Said]] = {
    "complete_verified": "good",
    "complete_unverified": "good",
    "partial": "bad",
    "failed": "bad",
    "undetermined": "unsure",
}


class ProposedLabel(Struct, frozen=True, kw_only=True):
    """What a model would say of a session's success, and why."""

    session_id: str
    session_digest: str
    """As it was read: of a session that went on the same model may propose again."""
    model: str
    value: Said
    verdict: VerdictName
    confidence: Confidence | None = None
    evidence: tuple[Evidence, ...] = ()
    """Where the session shows it."""
    proposed_at: datetime


def said_of(reading: SessionReview) -> Said:
    """Return the label that a reading comes to; one of low confidence is ``unsure``.

    What is probably done and was not checked is ``good``: the proposal shows its verdict, and a
    person decides.
    """
    return "unsure" if reading.confidence == "low" else _SAID[reading.verdict]


def proposals_of(rows: Iterable[SessionScores], now: datetime) -> list[ProposedLabel]:
    """Return what a model's rows propose; one without a reading proposes nothing."""
    return [
        ProposedLabel(
            session_id=row.session_id,
            session_digest=row.session_digest,
            model=row.model,
            value=said_of(row.reading),
            verdict=row.reading.verdict,
            confidence=row.reading.confidence,
            evidence=row.reading.proofs,
            proposed_at=now,
        )
        for row in rows
        if row.status == "ok" and row.reading is not None
    ]


def put_proposals(lake: Lake, found: Sequence[ProposedLabel]) -> None:
    """Keep proposals; those of the same model and session go."""
    for model in sorted({label.model for label in found}):
        new = {label.session_id: label for label in found if label.model == model}
        partition = slugify(model)
        kept = {row.session_id: row for row in lake.read(PROPOSED, partition, ProposedLabel)}
        rows = [label for _, label in sorted((kept | new).items())]
        lake.write(PROPOSED, partition, rows, ProposedLabel)


def proposals_by_session(lake: Lake) -> dict[str, ProposedLabel]:
    """Return the latest proposal for each session, by its id."""
    rows = sorted(lake.rows(PROPOSED, ProposedLabel), key=lambda row: row.proposed_at)
    return {row.session_id: row for row in rows}


def sessions_to_label(lake: Lake, most: int, but: Collection[str] = ()) -> list[Session]:
    """Return the sessions whose labels would teach most, in the order of "Label next".

    Args:
        lake: with sessions that were scored.
        most: sessions to return at most.
        but: ids of sessions to leave out, beside those with a label.
    """
    roll = Roll(labelled_sessions(lake))
    said = (label.session_id for label in all_labels(lake, PEOPLE) if not label.loose)
    without = {*map(roll.find, said), *but}
    ranked: list[tuple[float, str, str]] = []
    for week in lake.partitions("session_scores"):
        scores: dict[str, list[SessionScores]] = defaultdict(list)
        for row in lake.read("session_scores", week, SessionScores):
            scores[row.session_id].append(row)
        judged: dict[str, list[JudgeEvaluation]] = defaultdict(list)
        for judgement in lake.read("judge_evaluations", week, JudgeEvaluation):
            judged[judgement.session_id].append(judgement)
        for id_, rows in scores.items():
            first, *_ = ordered = in_order(rows)
            failed = first.failure or any(evaluation.failure for evaluation in judged[id_])
            if id_ not in without and not failed and first.verdict is not None:
                ranked.append((-worth_of(ordered, judged[id_]).value, id_, week))
    chosen = {id_: week for _, id_, week in sorted(ranked)[:most]}
    by_week: dict[str, set[str]] = defaultdict(set)
    for id_, week in chosen.items():
        by_week[week].add(id_)
    found = {
        session.id: session
        for week, ids in by_week.items()
        for session in lake.read(SESSIONS_TABLE, week, Session, ("id", ids))
    }
    return [found[id_] for id_ in chosen if id_ in found]


class ProposalRecord(Struct, frozen=True, kw_only=True):
    """What became of a model's proposals."""

    model: str
    confirmed: int = 0
    """A person said the same afterwards."""
    changed: int = 0
    """A person said something else afterwards."""
    waiting: int = 0
    """Nobody said anything yet."""


def records_of(
    proposals: Iterable[ProposedLabel], given: Iterable[Label], labelled: Collection[str]
) -> list[ProposalRecord]:
    """Return how people answered each model's proposals.

    Args:
        proposals: of all models.
        given: labels given on pages; of several of one session the last counts.
        labelled: ids of sessions with any label: what is proposed for them does not wait.
    """
    said = {
        label.session_id: label
        for label in sorted(given, key=lambda label: label.seen)
        if label.name == SUCCESS
    }
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for proposal in proposals:
        label, of_model = said.get(proposal.session_id), counts[proposal.model]
        if label is not None and label.seen >= proposal.proposed_at:
            of_model["confirmed" if label.value == proposal.value else "changed"] += 1
        elif label is None and proposal.session_id not in labelled:
            of_model["waiting"] += 1
    return [ProposalRecord(model=model, **counts[model]) for model in sorted(counts)]

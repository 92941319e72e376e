"""What a lake holds, in one look: what a run ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.rubrics.model import Rubric, RubricEvaluation
from debrief.scoring.model import SCORE_NAMES, SessionScores
from debrief.sessions.heads import SessionHead
from debrief.sessions.model import UnreadTranscript
from debrief.sessions.store import SESSIONS_TABLE, UNREAD_TABLE


class Failure(Struct, frozen=True, kw_only=True):
    """Something that one session or transcript failed at; everything else went on."""

    stage: str
    culprit: str
    reason: str


class TrainingSetSize(Struct, frozen=True, kw_only=True):
    """One training set."""

    path: str
    samples: int
    size: int
    """Bytes."""


class Summary(Struct, frozen=True, kw_only=True):
    """The figures that a run ends with."""

    weeks: tuple[str, ...]
    sessions: int
    by_tool: tuple[tuple[str, int], ...]
    repaired: int
    """Places inside transcripts that were passed over, their sessions having been read."""
    empty: int
    """Transcripts that never held a session."""
    judged: int
    scored: int
    several_chunks: int
    rubric_scores: int
    rubrics: tuple[tuple[str, tuple[Rubric, ...]], ...]
    """By score name."""
    training_sets: tuple[TrainingSetSize, ...]
    failures: tuple[Failure, ...]
    passed_over: tuple[Failure, ...]
    """The repaired places and empty transcripts, each with its reason."""
    evaluator: str
    cost_usd: float | None
    """None when a price was not known."""


def summarise(lake: Lake, weeks: Iterable[str] | None = None) -> Summary:
    """Return what the lake holds of ``weeks`` (all, when None), and all its training sets."""
    taken = tuple(lake.partitions(SESSIONS_TABLE) if weeks is None else sorted(set(weeks)))
    heads = [head for week in taken for head in lake.read(SESSIONS_TABLE, week, SessionHead)]
    unread = [row for week in taken for row in lake.read(UNREAD_TABLE, week, UnreadTranscript)]
    judged = [r for week in taken for r in lake.read("judge_evaluations", week, JudgeEvaluation)]
    scored = [row for week in taken for row in lake.read("session_scores", week, SessionScores)]
    held = [r for week in taken for r in lake.read("rubric_evaluations", week, RubricEvaluation)]
    failures = [
        *(_failure("reading", _place(r.path, r.line), r.reason) for r in unread if not r.expected),
        *(
            _failure("judging", f"{row.session_id} by {row.judge}", row.failure)
            for row in judged
            if row.status == "failed"
        ),
        *(
            _failure("scoring", row.session_id, row.failure)
            for row in scored
            if row.status == "failed"
        ),
        *(
            _failure("rubrics", f"{row.session_id} on {row.rubric_id}", row.failure)
            for row in held
            if row.status == "failed"
        ),
    ]
    passed_over = [
        *(
            _failure("reading", _place(problem.path, problem.line), problem.reason)
            for head in heads
            for problem in head.problems
        ),
        *(_failure("reading", _place(r.path, r.line), r.reason) for r in unread if r.expected),
    ]
    costs = [
        *(row.cost_usd for row in judged if row.status == "ok"),
        *(row.cost_usd for row in scored if row.status == "ok"),
        *(row.cost_usd for row in held if row.status == "ok"),
    ]
    known = [cost for cost in costs if cost is not None]
    return Summary(
        weeks=taken,
        sessions=len(heads),
        by_tool=tuple(Counter(head.tool for head in heads).most_common()),
        repaired=sum(len(head.problems) for head in heads),
        empty=sum(row.expected for row in unread),
        judged=len({row.session_id for row in judged if row.status == "ok"}),
        scored=len({row.session_id for row in scored if row.status == "ok"}),
        several_chunks=len({row.session_id for row in scored if len(row.chunks) > 1}),
        rubric_scores=sum(row.status == "ok" for row in held),
        rubrics=tuple((name, tuple(lake.read("rubrics", name, Rubric))) for name in SCORE_NAMES),
        training_sets=tuple(_training_sets(lake)),
        failures=tuple(failures),
        passed_over=tuple(passed_over),
        evaluator=", ".join(sorted({r.model for r in judged} | {r.model for r in scored}))
        or "nobody",
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )


def _training_sets(lake: Lake) -> Iterable[TrainingSetSize]:
    for name in lake.names("training", ".jsonl"):
        data = lake.read_bytes(name) or b""
        yield TrainingSetSize(path=lake.path(name), samples=data.count(b"\n"), size=len(data))


def _failure(stage: str, culprit: str, reason: str) -> Failure:
    return Failure(stage=stage, culprit=culprit, reason=reason)


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path

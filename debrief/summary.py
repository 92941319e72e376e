"""What a lake holds, in one look: what a run ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from debrief.lake import Lake, Row
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES
from debrief.sessions.model import SessionHead, UnreadTranscript
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
    """Places inside transcripts that were skipped; their sessions were read."""
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


class Judged(Struct, frozen=True, kw_only=True):
    """What a summary needs of a judgement."""

    session_id: str
    judge: str
    weight: float
    model: str
    status: str
    score: float | None = None
    failure: str = ""
    cost_usd: float | None = None


class Scored(Struct, frozen=True, kw_only=True):
    """What a summary needs of a session's scores."""

    session_id: str
    model: str
    status: str
    failure: str = ""
    overall_quality: float | None = None
    chunk_agreement: float | None = None
    """None for a single chunk."""
    cost_usd: float | None = None


class Held(Struct, frozen=True, kw_only=True):
    """What a summary needs of a session on a rubric."""

    session_id: str
    rubric_id: str
    status: str
    score: int | None = None
    failure: str = ""
    cost_usd: float | None = None


class Content(Struct, frozen=True, kw_only=True):
    """What the lake holds of some weeks, as far as summaries and pages show it.

    The columns that take most of the room, reasons and turns, are not read.
    """

    weeks: tuple[str, ...]
    heads: tuple[SessionHead, ...]
    unread: tuple[UnreadTranscript, ...]
    judged: tuple[Judged, ...]
    scored: tuple[Scored, ...]
    held: tuple[Held, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return what failed; everything else went on."""
        unread = (row for row in self.unread if not row.expected)
        return (
            *(_failure("reading", _place(row.path, row.line), row.reason) for row in unread),
            *(
                _failure("judging", f"{row.session_id} by {row.judge}", row.failure)
                for row in self.judged
                if row.status == "failed"
            ),
            *(
                _failure("scoring", row.session_id, row.failure)
                for row in self.scored
                if row.status == "failed"
            ),
            *(
                _failure("rubrics", f"{row.session_id} on {row.rubric_id}", row.failure)
                for row in self.held
                if row.status == "failed"
            ),
        )

    @property
    def cost_usd(self) -> float | None:
        """Return what the rows that stand have cost; None when a price was not known."""
        rows: tuple[Judged | Scored | Held, ...] = (*self.judged, *self.scored, *self.held)
        costs = [row.cost_usd for row in rows if row.status == "ok"]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None


def content_of(lake: Lake, weeks: Iterable[str]) -> Content:
    """Return what the lake holds of ``weeks``."""
    taken = tuple(sorted(set(weeks)))

    def rows(table: str, row_type: type[Row]) -> tuple[Row, ...]:
        return tuple(row for week in taken for row in lake.read(table, week, row_type))

    return Content(
        weeks=taken,
        heads=rows(SESSIONS_TABLE, SessionHead),
        unread=rows(UNREAD_TABLE, UnreadTranscript),
        judged=rows("judge_evaluations", Judged),
        scored=rows("session_scores", Scored),
        held=rows("rubric_evaluations", Held),
    )


def summarise(lake: Lake, weeks: Iterable[str] | None = None) -> Summary:
    """Return what the lake holds of ``weeks`` (all, when None), and all its training sets."""
    content = content_of(lake, lake.partitions(SESSIONS_TABLE) if weeks is None else weeks)
    heads, unread, judged, scored = content.heads, content.unread, content.judged, content.scored
    passed_over = [
        *(
            _failure("reading", _place(problem.path, problem.line), problem.reason)
            for head in heads
            for problem in head.problems
        ),
        *(_failure("reading", _place(r.path, r.line), r.reason) for r in unread if r.expected),
    ]
    return Summary(
        weeks=content.weeks,
        sessions=len(heads),
        by_tool=tuple(Counter(head.tool for head in heads).most_common()),
        repaired=sum(len(head.problems) for head in heads),
        empty=sum(row.expected for row in unread),
        judged=len({row.session_id for row in judged if row.status == "ok"}),
        scored=len({row.session_id for row in scored if row.status == "ok"}),
        several_chunks=len({row.session_id for row in scored if row.chunk_agreement is not None}),
        rubric_scores=sum(row.status == "ok" for row in content.held),
        rubrics=tuple((name, tuple(lake.read("rubrics", name, Rubric))) for name in SCORE_NAMES),
        training_sets=tuple(_training_sets(lake)),
        failures=content.failures,
        passed_over=tuple(passed_over),
        evaluator=", ".join(sorted({r.model for r in judged} | {r.model for r in scored}))
        or "nobody",
        cost_usd=content.cost_usd,
    )


def _training_sets(lake: Lake) -> Iterable[TrainingSetSize]:
    for name in lake.names("training", ".jsonl"):
        data = lake.read_bytes(name) or b""
        yield TrainingSetSize(path=lake.path(name), samples=data.count(b"\n"), size=len(data))


def _failure(stage: str, culprit: str, reason: str) -> Failure:
    return Failure(stage=stage, culprit=culprit, reason=reason)


def _place(path: str, line: int) -> str:
    return f"{path}:{line}" if line else path

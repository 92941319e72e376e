"""What a lake holds, in one look: what a run ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from debrief.lake import Lake, Row
from debrief.rubrics.model import Rubric
from debrief.scoring.model import SCORE_NAMES
from debrief.sessions.model import Problem, SessionHead, UnreadTranscript
from debrief.sessions.store import SESSIONS_TABLE, UNREAD_TABLE


class Failure(Struct, frozen=True):
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


class Evaluated(Struct, frozen=True, kw_only=True):
    """What a summary needs of a judgement, a session's scores, or a session on a rubric."""

    session_id: str
    status: str
    failure: str = ""
    model: str = ""
    cost_usd: float | None = None
    score: float | None = None
    judge: str = ""
    weight: float = 0.0
    """Of the judge."""
    rubric_id: str = ""
    overall_quality: float | None = None
    chunk_agreement: float | None = None
    """None for a single chunk."""


class Content(Struct, frozen=True, kw_only=True):
    """What the lake holds of some weeks, as far as summaries and pages show it.

    The columns that take most of the room, reasons and turns, are not read.
    """

    weeks: tuple[str, ...]
    heads: tuple[SessionHead, ...]
    unread: tuple[UnreadTranscript, ...]
    judged: tuple[Evaluated, ...]
    scored: tuple[Evaluated, ...]
    held: tuple[Evaluated, ...]

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Return what failed; everything else went on."""
        stages = (
            ("judging", self.judged, "{0.session_id} by {0.judge}"),
            ("scoring", self.scored, "{0.session_id}"),
            ("rubrics", self.held, "{0.session_id} on {0.rubric_id}"),
        )
        return (
            *(_unread(row) for row in self.unread if not row.expected),
            *(
                Failure(stage, culprit.format(row), row.failure)
                for stage, rows, culprit in stages
                for row in rows
                if row.status == "failed"
            ),
        )

    @property
    def cost_usd(self) -> float | None:
        """Return what the rows that stand have cost; None when a price was not known."""
        rows = (*self.judged, *self.scored, *self.held)
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
        judged=rows("judge_evaluations", Evaluated),
        scored=rows("session_scores", Evaluated),
        held=rows("rubric_evaluations", Evaluated),
    )


def summarise(lake: Lake, weeks: Iterable[str] | None = None) -> Summary:
    """Return what the lake holds of ``weeks`` (all, when None), and all its training sets."""
    content = content_of(lake, lake.partitions(SESSIONS_TABLE) if weeks is None else weeks)
    heads, unread, judged, scored = content.heads, content.unread, content.judged, content.scored
    passed_over = [_unread(problem) for head in heads for problem in head.problems]
    passed_over += [_unread(row) for row in unread if row.expected]
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


def _unread(row: UnreadTranscript | Problem) -> Failure:
    place = f"{row.path}:{row.line}" if row.line else row.path
    return Failure("reading", place, row.reason)

"""Collect what a lake holds of some weeks, for the end of a run and for the weekly report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import get_args

from msgspec import Struct

from debrief.judging.evaluation import weighted_average
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.usage import total_cost
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.precedence import effective_judgements, effective_rows
from debrief.scoring.verdict import (
    NOT_REVIEWED,
    OUTCOME_LABELS,
    VERDICT_LABELS,
    VERDICT_NAMES,
    Basis,
    SessionVerdict,
    VerdictName,
)
from debrief.sessions.model import Problem, SessionHead, UnreadTranscript
from debrief.sessions.store import SESSIONS_TABLE, UNREAD_TABLE
from debrief.sessions.titles import title_of
from debrief.signals.display import event_sentence
from debrief.signals.schema import TABLE as SIGNALS
from debrief.signals.schema import Event, EventKind


class Failure(Struct, frozen=True):
    """Something that one session or transcript failed at; everything else went on."""

    stage: str
    culprit: str
    reason: str


class CountedReviewer(Struct, frozen=True, kw_only=True):
    """How many sessions one person, outcome or model gave which verdict."""

    basis: Basis
    source: str
    by_verdict: Mapping[VerdictName, int]

    @property
    def sessions(self) -> int:
        """Return how many sessions the verdicts are on."""
        return sum(self.by_verdict.values())

    @property
    def verdicts_shown(self) -> list[tuple[VerdictName, str, int]]:
        """Return each verdict that was given, its words and how often, the best first."""
        return _shown(self.by_verdict)

    @property
    def who(self) -> str:
        """Return who gave the verdicts: ``reviewed by claude-code``, ``labelled by sam``."""
        if self.basis == "review":
            return f"reviewed by {self.source}"
        if self.basis == "person":
            return f"labelled by {self.source}" if self.source else "labelled"
        return f"told by {OUTCOME_LABELS.get(self.source, self.source)}"

    @property
    def sentence(self) -> str:
        """Return who gave which verdicts: ``20 reviewed by claude-code: 12 complete, verified; …``
        without a stop."""
        each = "; ".join(f"{count:,} {said}" for _, said, count in self.verdicts_shown)
        return f"{self.sessions:,} {self.who}: {each}"


class CountedVerdicts(Struct, frozen=True, kw_only=True):
    """How many sessions have which verdict, by whom, and how many have none."""

    sessions: int = 0
    reviewers: tuple[CountedReviewer, ...] = ()
    """Models first, then people, then outcomes; of each kind the one with most sessions first."""

    @property
    def known(self) -> int:
        """Return how many sessions have a verdict."""
        return sum(each.sessions for each in self.reviewers)

    @property
    def not_reviewed(self) -> int:
        """Return on how many sessions nobody gave a verdict."""
        return self.sessions - self.known

    @property
    def by_verdict(self) -> Mapping[VerdictName, int]:
        """Return how many sessions have which verdict, whoever gave it."""
        total = Counter[VerdictName]()
        for each in self.reviewers:
            total.update(each.by_verdict)
        return total

    @property
    def verdicts_shown(self) -> list[tuple[VerdictName, str, int]]:
        """Return each verdict that there is, its words and how many have it, the best first."""
        return _shown(self.by_verdict)

    def sentences(self) -> str:
        """Return all of it in words: ``20 reviewed by claude-code: …. 209 not reviewed.``"""
        said = [f"{each.sentence}." for each in self.reviewers]
        if self.not_reviewed or not said:
            said.append(f"{self.not_reviewed:,} {NOT_REVIEWED}.")
        return " ".join(said)


def _shown(by_verdict: Mapping[VerdictName, int]) -> list[tuple[VerdictName, str, int]]:
    found = (name for name in VERDICT_NAMES if by_verdict.get(name))
    return [(name, VERDICT_LABELS[name], by_verdict[name]) for name in found]


_BASES: tuple[Basis, ...] = ("review", "person", "outcome")


def counted_verdicts(
    sessions: int, verdicts: Iterable[tuple[VerdictName, Basis, str, int]]
) -> CountedVerdicts:
    """Count sessions by verdict and by who gave it.

    Args:
        sessions: how many there are, with a verdict or without.
        verdicts: verdict, basis, source, and of how many sessions.
    """
    found: dict[tuple[Basis, str], Counter[VerdictName]] = defaultdict(Counter)
    for verdict, basis, source, count in verdicts:
        found[basis, source][verdict] += count
    reviewers = (
        CountedReviewer(basis=basis, source=source, by_verdict=counts)
        for (basis, source), counts in found.items()
    )
    order = sorted(
        reviewers, key=lambda each: (_BASES.index(each.basis), -each.sessions, each.source)
    )
    return CountedVerdicts(sessions=sessions, reviewers=tuple(order))


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
    eval_fingerprint: str = ""
    scoring_fingerprint: str = ""
    overall_quality: float | None = None
    chunk_agreement: float | None = None
    """None for a single chunk."""


class Sent(Struct, frozen=True, kw_only=True):
    """What a summary needs of the receipt of one score."""

    session_id: str
    status: str
    reason: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the server should have it, and does not show it."""
        return self.status in ("failed", "unconfirmed")


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
    sent: tuple[Sent, ...]
    verdict_of: Mapping[str, SessionVerdict] = {}
    """The verdict of each session that has one, by id."""

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
            *(
                Failure("sending", f"{count} score{'s' * (count > 1)} of {session}", reason)
                for (session, reason), count in Counter(
                    (row.session_id, row.reason) for row in self.sent if row.is_missing
                ).items()
            ),
        )

    @property
    def failed_reviews(self) -> dict[str, str]:
        """Return the sessions whose review failed, by id, and why."""
        return {row.session_id: row.failure for row in self.scored if row.status == "failed"}

    @property
    def passed_over(self) -> tuple[Failure, ...]:
        """Return the places that were skipped and the files that never held a session."""
        problems = (problem for head in self.heads for problem in head.problems)
        return (*map(_unread, problems), *(_unread(row) for row in self.unread if row.expected))

    @property
    def by_tool(self) -> list[tuple[str, int]]:
        """Return how many sessions each tool has, the most first."""
        return Counter(head.tool for head in self.heads).most_common()

    @property
    def verdicts(self) -> CountedVerdicts:
        """Return how many sessions have which verdict, and by whom."""
        ids = {head.id for head in self.heads}
        said = (verdict for id_, verdict in self.verdict_of.items() if id_ in ids)
        each = ((one.verdict, one.basis, one.source, 1) for one in said)
        return counted_verdicts(len(self.heads), each)

    @property
    def quality(self) -> float | None:
        """Return the mean overall quality of the sessions that a model reviewed; None of none."""
        reviewed = (row.overall_quality for row in effective_rows(self.scored))
        marks = [mark for mark in reviewed if mark is not None]
        return sum(marks) / len(marks) if marks else None

    @property
    def judges_mean(self) -> float | None:
        """Return the mean of the judges' scores, each judgement weighted by its judge."""
        return weighted_average(effective_judgements(self.judged))

    @property
    def cost_usd(self) -> float | None:
        """Return what the rows that stand have cost; None when a price was not known."""
        rows = (*self.judged, *self.scored, *self.held)
        return total_cost(row.cost_usd for row in rows if row.status == "ok")


def content_of(lake: Lake, weeks: Iterable[str]) -> Content:
    """Return what the lake holds of ``weeks``."""
    taken = tuple(sorted(set(weeks)))
    return Content(
        weeks=taken,
        heads=tuple(lake.rows(SESSIONS_TABLE, SessionHead, taken)),
        unread=tuple(lake.rows(UNREAD_TABLE, UnreadTranscript, taken)),
        judged=tuple(lake.rows("judge_evaluations", Evaluated, taken)),
        scored=tuple(lake.rows("session_scores", Evaluated, taken)),
        held=tuple(lake.rows("rubric_evaluations", Evaluated, taken)),
        sent=tuple(lake.rows("langfuse_scores", Sent, taken)),
        verdict_of=verdicts_in(lake, taken),
    )


def _unread(row: UnreadTranscript | Problem) -> Failure:
    place = f"{row.path}:{row.line}" if row.line else row.path
    return Failure("reading", place, row.reason)


class SessionEvents(Struct, frozen=True, kw_only=True):
    """A session that a person would want to look at, and why."""

    session_id: str
    week: str
    started: datetime
    events: tuple[Event, ...]
    """The most urgent first; at least one."""
    verdict: SessionVerdict | None = None
    """None where nobody gave one."""

    @property
    def urgency(self) -> tuple[int, int, float]:
        """Return what sorts sessions, the most urgent first: kind, count, then the newest."""
        first = self.events[0]
        return _KINDS.index(first.kind), -first.count, -self.started.timestamp()

    @property
    def reason(self) -> str:
        """Return the most urgent event in words, and how many other kinds there are."""
        rest = len(self.events) - 1
        more = f"; {counted(rest, 'more kind')} of event" if rest else ""
        return f"{event_sentence(self.events[0])}{more}"


_KINDS: tuple[EventKind, ...] = get_args(EventKind)


class _Eventful(Struct, frozen=True, kw_only=True):
    session_id: str
    started: datetime
    events: tuple[Event, ...] = ()


def sessions_to_look_at(lake: Lake, weeks: Iterable[str]) -> list[SessionEvents]:
    """Return the sessions of some weeks in which something happened, the most urgent first."""
    taken = list(weeks)
    verdicts = verdicts_in(lake, taken)
    found = (
        SessionEvents(
            session_id=row.session_id,
            week=week,
            started=row.started,
            events=row.events,
            verdict=verdicts.get(row.session_id),
        )
        for week in taken
        for row in lake.read(SIGNALS, week, _Eventful)
        if row.events
    )
    return sorted(found, key=lambda one: one.urgency)


class _Titled(Struct, frozen=True, kw_only=True):
    id: str
    title: str = ""


class _Prompt(Struct, frozen=True):
    prompt: str = ""


class _Asked(Struct, frozen=True, kw_only=True):
    id: str
    turns: tuple[_Prompt, ...] = ()


def titles_of(lake: Lake, week: str, ids: Collection[str]) -> dict[str, str]:
    """Return the titles of some sessions of a week by their ids, else what they first asked."""
    titled = lake.read(SESSIONS_TABLE, week, _Titled, ("id", ids))
    found = {row.id: row.title for row in titled if row.title}
    rest = set(ids) - found.keys()
    for asked in lake.read(SESSIONS_TABLE, week, _Asked, ("id", rest)) if rest else ():
        found[asked.id] = title_of("", (turn.prompt for turn in asked.turns))
    return found

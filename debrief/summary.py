"""What a lake holds of some weeks, in one look: what a run and a week's page end with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

from msgspec import Struct

from debrief.judging.evaluation import weighted_average
from debrief.lake import Lake
from debrief.models.usage import total_cost
from debrief.scoring.model import SuccessEstimate, Verdict
from debrief.sessions.model import Problem, SessionHead, UnreadTranscript, sentence
from debrief.sessions.store import SESSIONS_TABLE, UNREAD_TABLE


class Failure(Struct, frozen=True):
    """Something that one session or transcript failed at; everything else went on."""

    stage: str
    culprit: str
    reason: str


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
    def passed_over(self) -> tuple[Failure, ...]:
        """Return the places that were skipped and the files that never held a session."""
        problems = (problem for head in self.heads for problem in head.problems)
        return (*map(_unread, problems), *(_unread(row) for row in self.unread if row.expected))

    @property
    def by_tool(self) -> list[tuple[str, int]]:
        """Return how many sessions each tool has, the most first."""
        return Counter(head.tool for head in self.heads).most_common()

    @property
    def quality(self) -> float | None:
        """Return the mean of ``overall_quality``."""
        marks = [row.overall_quality for row in self.scored if row.overall_quality is not None]
        return sum(marks) / len(marks) if marks else None

    @property
    def judges_mean(self) -> float | None:
        """Return the mean of the judges' scores, each judgement weighted by its judge."""
        return weighted_average(self.judged)

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
    )


def _unread(row: UnreadTranscript | Problem) -> Failure:
    place = f"{row.path}:{row.line}" if row.line else row.path
    return Failure("reading", place, row.reason)


_MIDDLE = 0.5
"""Below this quality, what speaks against a session is its first reason."""


class RankedSession(Struct, frozen=True, kw_only=True):
    """One of the best or worst sessions."""

    id: str
    quality: float
    title: str
    """Its own, else its first prompt."""
    reason: str
    """What moved its score most."""


class _Scored(Struct, frozen=True, kw_only=True):
    session_id: str
    overall_quality: float | None = None
    verdicts: tuple[Verdict, ...] = ()
    success: SuccessEstimate | None = None


class _Titled(Struct, frozen=True, kw_only=True):
    id: str
    title: str = ""


class _Prompt(Struct, frozen=True):
    prompt: str = ""


class _Asked(Struct, frozen=True, kw_only=True):
    id: str
    turns: tuple[_Prompt, ...] = ()


def ranked_sessions(
    lake: Lake, weeks: Iterable[str], most: int
) -> tuple[list[RankedSession], list[RankedSession]]:
    """Return the worst sessions of some weeks, the worst first, and the best, the best first.

    A session is in one of both at most.
    """
    rows = [
        (row.overall_quality, row.session_id, week, row)
        for week in weeks
        for row in lake.read("session_scores", week, _Scored)
        if row.overall_quality is not None
    ]
    rows.sort(key=lambda row: row[:2])
    count = min(most, len(rows) // 2)
    sides = rows[:count], rows[::-1][:count]
    by_week: dict[str, set[str]] = defaultdict(set)
    for _, session_id, week, _row in (*sides[0], *sides[1]):
        by_week[week].add(session_id)
    titles: dict[str, str] = {}
    for week, ids in by_week.items():
        titles |= titles_of(lake, week, ids)
    worst, best = (
        [
            RankedSession(
                id=session_id,
                quality=quality,
                title=titles.get(session_id, ""),
                reason=first_reason(quality, row.success, row.verdicts)[0],
            )
            for quality, session_id, _, row in side
        ]
        for side in sides
    )
    return worst, best


def titles_of(lake: Lake, week: str, ids: Collection[str]) -> dict[str, str]:
    """Return the titles of some sessions of a week by their ids, else their first prompts."""
    titled = lake.read(SESSIONS_TABLE, week, _Titled, ("id", ids))
    found = {row.id: row.title for row in titled if row.title}
    rest = set(ids) - found.keys()
    for asked in lake.read(SESSIONS_TABLE, week, _Asked, ("id", rest)) if rest else ():
        found[asked.id] = next((turn.prompt for turn in asked.turns if turn.prompt), "")
    return found


def first_reason(
    quality: float | None, success: SuccessEstimate | None, verdicts: Sequence[Verdict]
) -> tuple[str, int | None]:
    """Return what moved a session most towards the side that it is on, and the turn that shows it.

    Args:
        quality: overall.
        success: its estimate, whose reasons come first.
        verdicts: on its dimensions.
    """
    is_bad = quality is not None and quality < _MIDDLE
    reasons = success.reasons if success is not None else ()
    own = [(sentence(r.text, r.evidence), r.evidence) for r in reasons if (r.effect < 0) == is_bad]
    marks = [(v.value, v) for v in verdicts if v.value is not None]
    marks.sort(key=lambda mark: mark[0], reverse=not is_bad)
    said = [(v.rationale, v.evidence) for value, v in marks if (value < _MIDDLE) == is_bad]
    others = [(v.rationale, v.evidence) for _, v in marks]
    # What can be looked up in the session tells more than a count.
    shown = [each for each in (*own, *said) if each[1]]
    text, evidence = next(iter([*shown, *own, *said, *others]), ("", ()))
    return text, evidence[0].turn if evidence else None

"""Collect what a lake holds of some weeks, for the end of a run and for the weekly report."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from msgspec import Struct

from debrief.judging.evaluation import weighted_average
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.models.usage import total_cost
from debrief.outcomes.store import places_in
from debrief.rubrics.calibrating import UNCALIBRATED, Calibrations, calibrations_in
from debrief.scoring.order import FactPlace, OrderPlace
from debrief.scoring.precedence import effective_judgements, effective_rows
from debrief.scoring.verdict import (
    BASIS_LABELS,
    INCOMPLETE,
    VERDICT_LABELS,
    WORST_FIRST,
    Basis,
    SessionVerdict,
    VerdictName,
    basis_with_turns,
)
from debrief.sessions.model import Problem, SessionHead, UnreadTranscript
from debrief.sessions.store import SESSIONS_TABLE, UNREAD_TABLE
from debrief.sessions.titles import title_of


class Failure(Struct, frozen=True):
    """Something that one session or transcript failed at; everything else went on."""

    stage: str
    culprit: str
    reason: str


class CountedVerdicts(Struct, frozen=True, kw_only=True):
    """How many sessions have which verdict, and why the others have none."""

    sessions: int = 0
    by_verdict: Mapping[str, int] = {}
    by_basis: Mapping[str, int] = {}
    """Of those that cannot be told, by what they lack."""

    @property
    def known(self) -> int:
        """Return how many sessions have a verdict."""
        return sum(self.by_verdict.values())

    @property
    def unknown(self) -> int:
        """Return of how many sessions nothing shows whether they did what was asked."""
        return sum(self.by_basis.values())

    @property
    def shown(self) -> str:
        """Return how many have a verdict, in a sentence without its stop."""
        return f"{self.known:,} of {self.sessions:,} sessions have a verdict"

    @property
    def verdicts_shown(self) -> list[tuple[VerdictName, str, int]]:
        """Return each verdict that there is, its words and how many have it, the best first."""
        found = (name for name in reversed(WORST_FIRST) if name in self.by_verdict)
        return [(name, VERDICT_LABELS[name], self.by_verdict[name]) for name in found]

    @property
    def bases_shown(self) -> list[tuple[Basis, str, int]]:
        """Return why others have none, in words, and how many they are, the most first."""
        found = [(name, said, self.by_basis.get(name, 0)) for name, said in BASIS_LABELS.items()]
        return sorted((one for one in found if one[2]), key=lambda one: -one[2])

    def sentences(self) -> str:
        """Return all of it in words: ``238 of 300 sessions have a verdict: …``."""
        each = "; ".join(f"{count:,} {said}" for _, said, count in self.verdicts_shown)
        lines = [f"{self.shown}: {each}." if each else f"{self.shown}."]
        if self.unknown:
            why = ", ".join(f"{said} ({count:,})" for _, said, count in self.bases_shown)
            lines.append(f"{self.unknown:,} cannot be told: {why}.")
        if rest := self.sessions - self.known - self.unknown:
            lines.append(f"{counted(rest, 'session')} not scored.")
        return " ".join(lines)


def counted_verdicts(sessions: int, verdicts: Iterable[tuple[str, str, int]]) -> CountedVerdicts:
    """Count sessions by verdict, and those without one by basis.

    Args:
        sessions: how many there are, scored or not.
        verdicts: verdict, basis, and of how many sessions.
    """
    known, unknown = Counter[str](), Counter[str]()
    for verdict, basis, count in verdicts:
        if verdict == "undetermined":
            unknown[basis] += count
        else:
            known[verdict] += count
    return CountedVerdicts(sessions=sessions, by_verdict=known, by_basis=unknown)


class VerdictHead(Struct, frozen=True, kw_only=True):
    """What a summary needs of a verdict."""

    verdict: VerdictName
    basis: Basis


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
    verdict: VerdictHead | None = None
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
    calibrations: Calibrations = UNCALIBRATED
    """That means are taken by."""

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
    def not_scored(self) -> dict[str, str]:
        """Return the sessions that have no scores though somebody was to score them, by id, and
        why."""
        scored = {row.session_id for row in self.scored if row.status != "failed"}
        return {
            row.session_id: row.failure
            for row in self.scored
            if row.status == "failed" and row.session_id not in scored
        }

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
        """Return how many sessions have which verdict."""
        said = (row.verdict for row in effective_rows(self.scored))
        each = ((head.verdict, head.basis, 1) for head in said if head is not None)
        return counted_verdicts(len(self.heads), each)

    @property
    def qualities(self) -> list[float]:
        """Return the overall quality of the sessions that have one, calibrated where labels
        suffice."""
        numbers = map(self.calibrations.quality, effective_rows(self.scored))
        return [number for number in numbers if number is not None]

    @property
    def quality(self) -> float | None:
        """Return the mean of ``qualities``, which may be few of the sessions."""
        marks = self.qualities
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
        calibrations=calibrations_in(lake),
    )


def _unread(row: UnreadTranscript | Problem) -> Failure:
    place = f"{row.path}:{row.line}" if row.line else row.path
    return Failure("reading", place, row.reason)


class RankedSession(Struct, frozen=True, kw_only=True):
    """One of the sessions to look at first, or of the best."""

    id: str
    verdict: SessionVerdict | None
    title: str
    """Its own, else its first prompt."""
    reason: str
    """What the order, or else the verdict, rests on."""


class _Scored(Struct, frozen=True, kw_only=True):
    session_id: str
    status: str
    model: str
    started: datetime
    verdict: SessionVerdict | None = None


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
    """Return the sessions of some weeks to look at first, and the best, which are done and checked.

    A session is in one of both at most. Where none has a place in the order, those that are not
    done, or partly, are looked at first.
    """
    places = places_in(lake)
    rows = {
        row.session_id: (week, row)
        for week in weeks
        for row in effective_rows(lake.read("session_scores", week, _Scored))
    }

    def height(id_: str) -> float:
        return places[id_].place if id_ in places else -1.0

    newest = sorted(rows, key=lambda id_: (rows[id_][1].started, id_), reverse=True)
    said = {id_: one for id_ in newest if (one := rows[id_][1].verdict) is not None}
    first = sorted((id_ for id_ in newest if id_ in places and places[id_].look_first), key=height)
    if not places.keys() & rows.keys():
        short = (id_ for id_ in newest if id_ in said and said[id_].verdict in INCOMPLETE)
        first = sorted(short, key=lambda id_: WORST_FIRST.index(said[id_].verdict))
    done = (
        id_
        for id_, verdict in said.items()
        if verdict.verdict == "complete_verified" and id_ not in first
    )
    sides = first[:most], sorted(done, key=height, reverse=True)[:most]
    by_week: dict[str, set[str]] = defaultdict(set)
    for id_ in (*sides[0], *sides[1]):
        by_week[rows[id_][0]].add(id_)
    titles: dict[str, str] = {}
    for week, ids in by_week.items():
        titles |= titles_of(lake, week, ids)

    def ranked(id_: str, *, is_first: bool) -> RankedSession:
        verdict = rows[id_][1].verdict
        why = look_first_reason(places[id_]) if is_first and id_ in places else ""
        return RankedSession(
            id=id_,
            verdict=verdict,
            title=titles.get(id_, ""),
            reason=why or ("" if verdict is None else basis_with_turns(verdict)),
        )

    look_first, best = (
        [ranked(id_, is_first=is_first) for id_ in side]
        for side, is_first in zip(sides, (True, False), strict=True)
    )
    return look_first, best


def titles_of(lake: Lake, week: str, ids: Collection[str]) -> dict[str, str]:
    """Return the titles of some sessions of a week by their ids, else what they first asked."""
    titled = lake.read(SESSIONS_TABLE, week, _Titled, ("id", ids))
    found = {row.id: row.title for row in titled if row.title}
    rest = set(ids) - found.keys()
    for asked in lake.read(SESSIONS_TABLE, week, _Asked, ("id", rest)) if rest else ():
        found[asked.id] = title_of("", (turn.prompt for turn in asked.turns))
    return found


_GRADED: Mapping[str, tuple[str, str]] = {
    "errors": ("more failed calls", "fewer failed calls"),
    "streak": ("more failed calls in a row", "fewer failed calls in a row"),
    "repeats": ("more repeated calls", "fewer repeated calls"),
    "timeouts": ("more calls out of time", "fewer calls out of time"),
    "checks_passed": ("more of its checks passed", "fewer of its checks passed"),
    "corrections": ("more corrections", "fewer corrections"),
    "interruptions": ("more interruptions", "fewer interruptions"),
    "closing": ("a longer last message", "a shorter last message"),
    "asked": ("longer requests", "shorter requests"),
}
"""Facts of the order of which a session has more, or less, than most like it."""
_PLAIN: Mapping[str, tuple[str, str]] = {
    "last_check_failed": ("its last check failed", "its last check did not fail"),
    "last_check_passed": ("its last check passed", "no check passed at its end"),
    "seen_failing": ("a check failed before it passed", "no check was seen to fail first"),
    "broke_off": ("it breaks off", "it comes to an end"),
    "unchanged": ("nothing was changed", "something was changed"),
}
"""Facts that a session has, or has not."""
_REASONS = 2
"""Facts that are named of a session."""


def look_first_reason(place: OrderPlace) -> str:
    """Return the facts that moved a session most towards "look at these first", in words."""
    against = [fact for fact in place.facts if fact.effect < 0][:_REASONS]
    said = "; ".join(_said(fact, place.among) for fact in against)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _said(fact: FactPlace, among: int) -> str:
    has_more = fact.rank >= 0.5
    if fact.name in _PLAIN:
        return _PLAIN[fact.name][not has_more]
    name = fact.name.replace("_", " ")
    words = _GRADED.get(fact.name, (f"more {name}", f"less {name}"))[not has_more]
    share = fact.rank if has_more else 1 - fact.rank
    return f"{words} than {share:.0%} of {among:,} sessions like it"

"""How far a model is off: known answers, the same sessions twice, and changed ones.

The page answers one question before a year of sessions is paid for: is this model's word worth
more than none? It is where the model finds significantly more of the known verdicts than one and
the same answer to all would. A model that has never seen a session can pass neither this nor the
changes, whose words are drawn when it runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from debrief import stats
from debrief.errors import ModelError
from debrief.keys import digest_of
from debrief.markdown import counted, interval
from debrief.reports import Markdown, report
from debrief.scoring.model import ChunkScorer, SessionScores
from debrief.scoring.pairwise import Finding, SessionComparison
from debrief.scoring.scorer import score_session
from debrief.scoring.verdict import SHORT_OF_DONE, SHOWN, VerdictName
from debrief.sessions.model import Session
from debrief.stats import Estimate
from debrief.validity.calibration import CalibrationSession, KnownAnswer
from debrief.validity.changes import CHANGES, Move, Must, Wordings, changed_by, could_show

SESSIONS_A_CHANGE = 3
"""Calibration sessions that each change is made to: all would double the price."""


class GivenAnswer(Struct, frozen=True, kw_only=True):
    """What the model says of one session."""

    verdict: VerdictName
    quality: float | None
    """The overall quality, from 0 to 1."""
    contradicted: int = 0
    """Claims of the agent's that the recording contradicts."""


class CheckedSession(Struct, frozen=True, kw_only=True):
    """One calibration session, and what the model says of it."""

    name: str
    known: KnownAnswer
    given: GivenAnswer | None
    """None where there was no usable answer, for this reason:"""
    failure: str = ""
    again: GivenAnswer | None = None
    """The same question, asked a second time."""
    as_own: GivenAnswer | None = None
    """The same session, with the model's own name in it as the one that did the work."""

    @property
    def is_exact(self) -> bool:
        """Return whether the verdict is the known one."""
        return self.given is not None and self.given.verdict == self.known.verdict

    @property
    def fits(self) -> bool:
        """Return whether the quality is within what fits."""
        least, most = self.known.quality
        quality = self.given.quality if self.given else None
        return quality is not None and least <= quality <= most


class CheckedPair(Struct, frozen=True, kw_only=True):
    """Two calibration sessions, one of them done and checked, compared in both orders."""

    better: str
    other: str
    finding: Finding | None
    """``first`` is right; None where there was no usable answer."""


class ModelCheck(Struct, frozen=True, kw_only=True):
    """All that was found out about a model."""

    model: str
    sessions: tuple[CheckedSession, ...]
    moves: tuple[Move, ...]
    """What changes did to its verdict, where that could show."""
    pairs: tuple[CheckedPair, ...] = ()

    @property
    def exact(self) -> Estimate | None:
        """Return the share of known verdicts found."""
        return stats.share_of(
            sum(session.is_exact for session in self.sessions), len(self.sessions)
        )

    @property
    def constant(self) -> float:
        """Return the share that one and the same answer to all would find, at best."""
        known = Counter(session.known.verdict for session in self.sessions)
        return max(known.values()) / known.total() if known else 1.0

    @property
    def is_worth_more_than_none(self) -> bool:
        """Return whether it finds significantly more than that."""
        return self.exact is not None and self.exact.low > self.constant


Compare = Callable[[Session, Session], SessionComparison]
_Opposed = tuple[CalibrationSession, CalibrationSession]


class _Question(Struct, frozen=True):
    """One of the questions that a check asks."""

    session: Session
    by: ChunkScorer


def check_model(
    scorer: ChunkScorer,
    again: ChunkScorer,
    compared: Compare,
    cases: Sequence[CalibrationSession],
    wordings: Wordings,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _: None,
) -> ModelCheck:
    """Ask a model about sessions with known answers.

    Args:
        scorer: asks the model, or only counts what that would take.
        again: asks the same model the same, and gets an answer of its own.
        compared: asks it which of two sessions did better, in both orders.
        cases: sessions with what is known of them.
        wordings: to draw the words of changes from.
        seed: draws other words, and other sessions for each change.
        workers: questions that go out at a time.
        progress: called with 1 after each answer, ``questions_of`` times.
    """
    changed = list(_changed(cases, wordings, seed))
    questions = [
        *(_Question(case.session, scorer) for case in cases),
        *(_Question(case.session, again) for case in cases),
        *(_Question(_done_by(scorer.model, case.session), scorer) for case in cases),
        *(_Question(session, scorer) for _, _, session in changed),
    ]
    rows: list[SessionScores] = []
    with ThreadPoolExecutor(workers) as pool:
        for row in pool.map(_answer, questions):
            rows.append(row)
            progress(1)
        pairs = []
        for pair in pool.map(partial(_pair, compared=compared), _opposed(cases, seed)):
            pairs.append(pair)
            progress(1)
    first, second, as_own, moved = _divided(rows, len(cases))
    before = {row.session_id: given for row in first if (given := _given(row))}
    return ModelCheck(
        model=scorer.model,
        sessions=tuple(
            CheckedSession(
                name=case.name,
                known=case.known,
                given=_given(once),
                failure=once.failure,
                again=_given(twice),
                as_own=_given(own),
            )
            for case, once, twice, own in zip(cases, first, second, as_own, strict=True)
        ),
        moves=tuple(_moves(changed, moved, before)),
        pairs=tuple(pairs),
    )


def questions_of(cases: Sequence[CalibrationSession], wordings: Wordings, seed: int = 0) -> int:
    """Return how often a check reports progress."""
    changed, pairs = _changed(cases, wordings, seed), _opposed(cases, seed)
    return 3 * len(cases) + len(list(changed)) + len(list(pairs))


def _opposed(cases: Sequence[CalibrationSession], seed: int) -> Iterator[_Opposed]:
    """Yield each session that is done and checked with one that fell short."""
    good = [case for case in cases if case.known.verdict == "complete_verified"]
    bad = [case for case in cases if case.known.verdict in SHORT_OF_DONE]
    yield from zip(good, Random(f"{seed} pairs").sample(bad, len(bad)), strict=False)


def _pair(opposed: _Opposed, compared: Compare) -> CheckedPair:
    better, other = opposed
    try:
        finding = compared(better.session, other.session).finding
    except ModelError:
        finding = None
    return CheckedPair(better=better.name, other=other.name, finding=finding)


def _answer(question: _Question) -> SessionScores:
    return score_session(question.session, question.by)


_Changed = tuple[str, Must, Session]


def _changed(
    cases: Sequence[CalibrationSession], wordings: Wordings, seed: int
) -> Iterator[_Changed]:
    """Yield changed sessions: of each change so many, drawn among those where it could show."""
    for name, must, _ in CHANGES:
        able = [case.session for case in cases if could_show(must, case.known.verdict)]
        drawn = Random(f"{seed} {name}").sample(able, len(able))
        found = (changed_by(name, session, wordings, seed) for session in drawn)
        for session in islice(filter(None, found), SESSIONS_A_CHANGE):
            yield name, must, session


def _done_by(model: str, session: Session) -> Session:
    """Return the session as work of this model."""
    name = model.rpartition("/")[2]
    turns = tuple(
        replace(turn, messages=tuple(replace(message, model=name) for message in turn.messages))
        for turn in session.turns
    )
    own = replace(session, models=(name,), turns=turns)
    return replace(own, digest=digest_of(own))


def _divided(rows: Sequence[SessionScores], count: int) -> tuple[Sequence[SessionScores], ...]:
    return rows[:count], rows[count : 2 * count], rows[2 * count : 3 * count], rows[3 * count :]


def _given(row: SessionScores) -> GivenAnswer | None:
    if row.status == "failed" or row.verdict is None or row.reading is None:
        return None
    claims = sum(claim.state == "contradicted" for claim in row.reading.claims)
    return GivenAnswer(
        verdict=row.verdict.verdict, quality=row.overall_quality, contradicted=claims
    )


def _moves(
    changed: Sequence[_Changed], rows: Sequence[SessionScores], before: dict[str, GivenAnswer]
) -> Iterator[Move]:
    """Yield what changes did, where it could show on the verdict that the model gave before."""
    for (name, must, session), row in zip(changed, rows, strict=True):
        was, now = before.get(session.id), _given(row)
        if was and now and could_show(must, was.verdict):
            yield Move(change=name, must=must, before=was.verdict, after=now.verdict)


def model_check_markdown(check: ModelCheck) -> str:
    """Return the page: whether the model's word is worth more than none first."""
    failures = Counter(session.failure for session in check.sessions if session.given is None)
    return report(
        "model_check",
        model=check.model,
        exact=sum(session.is_exact for session in check.sessions),
        guess=check.constant * len(check.sessions),
        is_worth_more_than_none=check.is_worth_more_than_none,
        held=sum(move.holds for move in check.moves),
        moves=len(check.moves),
        sessions=[_line(session) for session in check.sessions],
        steadiness=list(_steadiness(check)),
        failures=[(reason, str(count)) for reason, count in failures.items()],
    )


def _line(one: CheckedSession) -> tuple[str, ...]:
    given, known = one.given, one.known
    least, most = known.quality
    fits = f"{least:g} to {most:g}"
    if given is None:
        return (one.name, SHOWN[known.verdict], "no answer", "–", fits, known.why)
    verdict = SHOWN[given.verdict] if one.is_exact else _bold(SHOWN[given.verdict])
    quality = "–" if given.quality is None else f"{given.quality:.2f}"
    marked = quality if one.fits else _bold(quality)
    return (one.name, SHOWN[known.verdict], verdict, marked, fits, known.why)


def _bold(text: str) -> Markdown:
    return Markdown(f"**{text}**")


def _steadiness(check: ModelCheck) -> Iterator[tuple[str, str, str]]:
    answered = [session for session in check.sessions if session.given]
    fits = sum(session.fits for session in answered)
    yield _share("the quality is within what fits", fits, len(answered))
    false = [session for session in answered if session.known.false_claim]
    seen = sum(bool(session.given and session.given.contradicted) for session in false)
    yield _share("a false claim is seen", seen, len(false))
    true = [session for session in answered if not session.known.false_claim]
    wrong = sum(bool(session.given and session.given.contradicted) for session in true)
    yield _share("a false claim is seen where there is none", wrong, len(true))
    yield from _compared("asked again", [(session.given, session.again) for session in answered])
    name = f"done by {check.model.rpartition('/')[2]} itself"
    yield from _compared(name, [(session.given, session.as_own) for session in answered])
    pairs = [pair.finding for pair in check.pairs if pair.finding]
    yield _share(
        "compared in both orders: the better one is named", pairs.count("first"), len(pairs)
    )
    decides = pairs.count("order_decides")
    yield _share("compared in both orders: the order decides", decides, len(pairs))
    for change, must, _ in CHANGES:
        moves = [move for move in check.moves if move.change == change]
        held = sum(move.holds for move in moves)
        yield _share(f"{change}: the verdict must {must}", held, len(moves))


def _compared(
    name: str, pairs: Sequence[tuple[GivenAnswer | None, GivenAnswer | None]]
) -> Iterator[tuple[str, str, str]]:
    both = [(answer, other) for answer, other in pairs if answer and other]
    same = sum(answer.verdict == other.verdict for answer, other in both)
    yield _share(f"{name}: the same verdict", same, len(both))
    moved = [
        other.quality - answer.quality
        for answer, other in both
        if answer.quality is not None and other.quality is not None
    ]
    found = stats.mean_of(moved, upper=1.0, lower=-1.0)
    shown = interval(found.mean, found.low, found.high, "+.2f", none="–")
    yield f"{name}: quality moves by", counted(len(moved), "session"), shown


def _share(name: str, count: int, of: int) -> tuple[str, str, str]:
    found = stats.share_of(count, of)
    shown = (
        "–" if found is None else f"{count} ({interval(found.value, found.low, found.high, '.0%')})"
    )
    return name, str(of), shown

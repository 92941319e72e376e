"""Ask the sessions of a lake a question, and keep what they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime

from msgspec import Struct
from msgspec.structs import replace

from debrief.conditions import Where
from debrief.errors import DebriefError
from debrief.evaluators import Evaluators
from debrief.files import only_writer
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.models.prompting import PromptedModel
from debrief.models.usage import total_cost
from debrief.questions.asking import SessionAsker, ask_sessions, put_together
from debrief.questions.schema import (
    ALL,
    QUESTIONS,
    KeptQuestion,
    answers_by_question,
    facets_in,
    question_id,
    questions_in,
)
from debrief.questions.standing import friction_question, known_friction
from debrief.redaction.redactor import key_of
from debrief.review_offer import stubs_in
from debrief.scope import Scope
from debrief.scoring.model import FACETS, AskedQuestion, Facet
from debrief.sessions.model import Evidence, Session, SessionHead
from debrief.settings import load_settings


class ToAsk(Struct, frozen=True, kw_only=True):
    """Which sessions a question is about, and which of them have not been asked it."""

    question: KeptQuestion
    sessions: tuple[SessionHead, ...]
    """The newest first."""
    open: frozenset[str]
    """Ids of those without an answer at their present state."""
    left_out: tuple[tuple[str, int], ...] = ()
    """Why sessions are not asked, and how many."""
    is_answered: bool = False
    """The kept answer rests on these very sessions."""
    is_friction: bool = False
    """It asks whether a known friction happened: nothing is put together, each answer counts."""


class AskResult(Struct, frozen=True, kw_only=True):
    """What became of a question."""

    question: KeptQuestion
    facets: dict[str, Facet]
    """What each session answers, by its id."""
    read: tuple[str, ...]
    """Ids of the sessions with an answer."""
    found: tuple[str, ...]
    now: int = 0
    """Of ``read``: asked in this run."""
    failed: dict[str, str] = {}
    """Why a session has no answer, by its id."""
    left_out: tuple[tuple[str, int], ...] = ()
    cost_usd: float | None = None
    since: date | None = None
    """When it was answered last; None for the first time."""
    new_read: int = 0
    new_found: int = 0
    is_friction: bool = False
    problem: str = ""
    """Why no answer was put together."""
    first: datetime | None = None
    last: datetime | None = None

    @property
    def span(self) -> str:
        """Return the days that were read, in words."""
        if self.first is None or self.last is None:
            return ""
        return f" ({self.first:%Y-%m-%d} to {self.last:%Y-%m-%d})"


def to_ask(lake: Lake, text: str, where: Where, newest: int = 0, model: str = "") -> ToAsk:
    """Return which sessions a question is to be asked of.

    Sessions without work and without an answer of the agent are left out.

    Args:
        lake: with the sessions.
        text: the question, or the id of a friction that reviews found.
        where: conditions that hold for each of them.
        newest: so many at most; 0: all.
        model: whose answers count; anybody's by default.
    """
    known = {each.id: each for each in questions_in(lake)}
    friction = known_friction(lake).get(text.strip())
    if friction is not None:
        asked = friction_question(friction)
        question = KeptQuestion(id=asked.id, text=asked.text)
        where = Where((*where.conditions, ("repository", (friction.repository,))))
    else:
        id_ = question_id(text)
        question = known.get(id_) or KeptQuestion(id=id_, text=" ".join(text.split()))
    weeks = lake.partitions("raw_sessions")
    heads = list(lake.rows("raw_sessions", SessionHead, weeks))
    scope = Scope(where=where)
    meant = {id_ for week in weeks for id_ in scope.ids(lake, week)} if where else None
    stubs = stubs_in(lake)
    chosen = [
        head for head in heads if (meant is None or head.id in meant) and head.id not in stubs
    ]
    chosen.sort(key=lambda head: (head.started, head.id), reverse=True)
    taken = chosen[:newest] if newest else chosen
    in_filter = len(heads) if meant is None else len(meant)
    reasons = (
        ("left out by --where", len(heads) - in_filter),
        ("nothing was said or done", in_filter - len(chosen)),
        (f"older than the newest {newest}", len(chosen) - len(taken)),
    )
    answers = answers_by_question(facets_in(lake, weeks)).get(question.id, {})
    open_ = {
        head.id
        for head in taken
        if head.id not in answers
        or answers[head.id].session_digest != head.digest
        or model not in ("", answers[head.id].model)
    }
    read = {head.id for head in taken}
    answer = question.answer
    is_same = (
        answer is not None
        and answer.asked == len(read)
        and (set(answer.found) == {i for i in read if i in answers and answers[i].found})
    )
    return ToAsk(
        question=question,
        sessions=tuple(taken),
        open=frozenset(open_),
        left_out=tuple((why, count) for why, count in reasons if count),
        is_answered=is_same or friction is not None,
        is_friction=friction is not None,
    )


def ask_all(
    lake: Lake,
    plan: ToAsk,
    by: Evaluators | None,
    standing: bool | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> AskResult:
    """Ask all sessions that are open, put the answers together, and keep both.

    In a dry run nothing is kept.

    Args:
        lake: with the sessions.
        plan: of ``to_ask``.
        by: who is asked; None where nothing is open.
        standing: whether new sessions are to be asked; None leaves it as it is.
        progress: gets how many of the open ones were asked, and how many there are.
    """
    question = plan.question
    asked = AskedQuestion(id=question.id, text=question.text)
    made: dict[str, Facet] = {}
    if by is not None and plan.open:
        for facet in _facets(lake, plan, asked, by):
            made[facet.session_id] = facet
            progress(len(made), len(plan.open))
    is_kept = by is None or not by.dry_run
    stored = answers_by_question(facets_in(lake)).get(question.id, {})
    ids = [head.id for head in plan.sessions]
    facets = {id_: stored[id_] for id_ in ids if id_ in stored and id_ not in _failed(made)}
    answer, problem = question.answer, ""
    if by is not None and not plan.is_friction:
        counted = {id_: _as_found(facet) for id_, facet in made.items()} if by.dry_run else {}
        try:
            answer = put_together(asked, list((facets | counted).values()), _prompted(by))
        except DebriefError as error:
            answer, problem = None, str(error)
    before = question.answer
    question = replace(
        question,
        answer=answer,
        standing=question.standing if standing is None else standing,
    )
    if is_kept and not plan.is_friction:
        with only_writer(load_settings().home, lake.url):
            others = [each for each in questions_in(lake) if each.id != question.id]
            lake.write(QUESTIONS, ALL, [*others, question], KeptQuestion)
    found = tuple(id_ for id_, facet in facets.items() if facet.found)
    new = {
        id_
        for id_, facet in facets.items()
        if before is not None and (id_ in made or facet.asked_on > before.on)
    }
    started = [head.started for head in plan.sessions if head.id in facets]
    return AskResult(
        question=question,
        facets=facets,
        read=tuple(facets),
        found=found,
        now=sum(facet.status == "ok" for facet in made.values()),
        failed=_failed(made),
        left_out=plan.left_out,
        cost_usd=total_cost(facet.cost_usd for facet in made.values()),
        since=before.on if before is not None else None,
        new_read=len(new),
        new_found=len(new.intersection(found)),
        is_friction=plan.is_friction,
        problem=problem,
        first=min(started, default=None),
        last=max(started, default=None),
    )


def ask_about_lines(lake: Lake, by: Evaluators) -> None:
    """Ask all sessions of a repository about each friction that a line of its prompt file is
    about, so that sessions before and after the line can be compared."""
    for friction in known_friction(lake).values():
        if friction.existing:
            ask_all(lake, to_ask(lake, friction.id, Where()), by)


def _failed(made: dict[str, Facet]) -> dict[str, str]:
    return {id_: each.failure for id_, each in made.items() if each.status == "failed"}


def _prompted(by: Evaluators) -> PromptedModel:
    assert by.models is not None
    return PromptedModel(by.name, by.models.get(by.name).ask, key_of(load_settings()))


def _facets(lake: Lake, plan: ToAsk, asked: AskedQuestion, by: Evaluators) -> Iterator[Facet]:
    """Ask what is open, week by week, the newest first; keep each week's answers."""
    assert by.models is not None
    ask = by.models.get(by.name).ask
    asker = SessionAsker(asked, by.name, ask, key_of(load_settings()))
    weeks = {week_of(head.started) for head in plan.sessions if head.id in plan.open}

    for week in sorted(weeks, reverse=True):
        sessions = lake.read("raw_sessions", week, Session, only=("id", plan.open))
        own = []
        for facet in ask_sessions(sessions, asker, {}, concurrency=by.concurrency):
            own.append(facet)
            yield facet
        if not by.dry_run:
            _keep(lake, week, [facet for facet in own if facet.status == "ok"])


def _as_found(facet: Facet) -> Facet:
    """Return an answer of a usual size, to count what putting answers together takes at most."""
    place = Evidence(1, "", "words " * 10)
    return replace(facet, found=True, answer="word " * 25, places=(place,))


def _keep(lake: Lake, week: str, own: Sequence[Facet]) -> None:
    """Write a week's answers; each takes the place of an earlier one to its question."""
    pairs = {(facet.session_id, facet.question_id) for facet in own}
    with only_writer(load_settings().home, lake.url):
        stored = lake.read(FACETS, week, Facet)
        others = [row for row in stored if (row.session_id, row.question_id) not in pairs]
        lake.write(FACETS, week, [*others, *own], Facet)

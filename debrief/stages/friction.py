"""Friction: events of each session, what recurs in a repository, and whether a line helped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cache

from msgspec import Struct

from debrief.errors import DebriefError
from debrief.friction import failed_commands, grouping, line_effects
from debrief.friction.advice import advice_markdown
from debrief.friction.failed_commands import failed_commands as failures_of
from debrief.friction.grouping import in_order, is_alike, recurring_failures
from debrief.friction.grouping_question import RepositoryNotes, group_notes
from debrief.friction.line_effects import PromptedSession, effects_markdown
from debrief.friction.line_effects import line_effects as effects_of
from debrief.friction.review_notes import noted_friction, passage
from debrief.friction.schema import (
    EFFECTS,
    EVENTS,
    RECURRING,
    FrictionEvent,
    LineEffect,
    RecurringFriction,
)
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.models.prompting import PromptedModel
from debrief.models.templates import FRICTION_CHECK, FRICTION_GROUPS, version_of
from debrief.models.usage import price_of
from debrief.questions.schema import answers_by_question, facets_in
from debrief.redaction.redactor import key_of
from debrief.scoring.model import FACETS, SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.snapshots.model import SNAPSHOTS
from debrief.stages.evaluations import MODEL_POOL, SESSION_SCORES
from debrief.stages.run import StageRun, log_progress
from debrief.stages.sessions import PROMPT_SNAPSHOTS, RAW_SESSIONS
from debrief.stages.shown import Shown, ShownPage, counted_by
from debrief.stages.signals import prices_now
from debrief.stages.stage import ALL, Read, Stage, upstream
from debrief.stages.versions import prompt_texts


def _events(run: StageRun, week: str, stored: list[FrictionEvent]) -> Iterator[FrictionEvent]:
    own = load_settings().prices
    prices = cache(lambda model: price_of(model, own))
    scores = effective_rows(run.lake.read("session_scores", week, SessionScores))
    reviews = {row.session_id: row for row in scores}
    for session in run.lake.read("raw_sessions", week, Session):
        yield from failures_of(session, prices)
        if (row := reviews.get(session.id)) is not None:
            yield from noted_friction(row, session)


def _events_shown(run: StageRun, week: str, rows: list[FrictionEvent]) -> Shown:
    sessions = {row.session_id for row in rows}
    noted_by = counted_by("by", "events", (row.by or "the rule" for row in rows))
    return Shown(f"{len(rows)} events in {len(sessions)} sessions", {"noted_by": noted_by})


FRICTION_EVENTS = Stage(
    table=EVENTS,
    doc="""Each command that failed in a session of the week, with what then worked and the tokens,
money and minutes that this took; and what the session's review noted.""",
    group="friction",
    row_type=FrictionEvent,
    version=lambda: failed_commands.VERSION,
    reads=(RAW_SESSIONS, SESSION_SCORES),
    made_from=prices_now,
    make=_events,
    shown=_events_shown,
)


def _ungrouped(run: StageRun) -> list[str]:
    """Return the repositories whose notes could not be grouped in this run."""
    return run.once("ungrouped", list[str])


def _asker(run: StageRun, partition: str) -> object:
    return version_of(FRICTION_GROUPS, FRICTION_CHECK), run.evaluators.name


def _frictions(
    run: StageRun, partition: str, stored: list[RecurringFriction]
) -> list[RecurringFriction]:
    events = list(run.lake.rows(EVENTS, FrictionEvent))
    noted = [event for event in events if event.by and event.repository]
    known = [row for row in stored if row.by]
    grouped = _still_there(known, noted)
    if run.evaluators.models is not None:
        grouped = list(_grouped(run, noted, known))
    failed = recurring_failures(events)
    others = [
        row
        for row in grouped
        if not any(row.repository == each.repository and is_alike(row, each) for each in failed)
    ]
    return in_order([*failed, *_with_answers(run, others, noted)])


def _with_answers(
    run: StageRun, rows: Iterable[RecurringFriction], noted: Iterable[FrictionEvent]
) -> Iterator[RecurringFriction]:
    """Yield frictions with the sessions that said yes when they were asked about them."""
    answers = answers_by_question(facets_in(run.lake))
    events = {event.id: event for event in noted}
    starts = {head.id: head.started for head in run.lake.rows("raw_sessions", _SessionStart)}
    for row in rows:
        more = [
            FrictionEvent(
                session_id=id_,
                repository=row.repository,
                at=starts[id_],
                evidence=facet.places[0],
                by=facet.model,
                what=facet.answer or row.what,
            )
            for id_, facet in answers.get(row.id, {}).items()
            if facet.found and id_ in starts and id_ not in row.sessions
        ]
        own = [events[id_] for id_ in row.events if id_ in events]
        yield (
            RecurringFriction.of(
                [*own, *more],
                id=row.id,
                by=row.by,
                what=row.what,
                line=row.line,
                existing=row.existing,
            )
            if more and own
            else row
        )


def _still_there(
    known: Iterable[RecurringFriction], events: Iterable[FrictionEvent]
) -> list[RecurringFriction]:
    """Return the frictions whose sessions still have notes; nobody groups them anew."""
    there = {event.session_id for event in events}
    return [row for row in known if len(there.intersection(row.sessions)) > 1]


def _grouped(
    run: StageRun, events: Iterable[FrictionEvent], known: Sequence[RecurringFriction]
) -> Iterator[RecurringFriction]:
    """Yield what a model groups of each repository's notes; the known ones where it gives no
    answer."""
    by, lake = run.evaluators, run.lake
    assert by.models is not None
    model = PromptedModel(by.name, by.models.get(by.name).ask, key_of(load_settings()))
    by_repository: dict[str, list[FrictionEvent]] = defaultdict(list)
    for event in sorted(events, key=lambda event: (event.at, event.session_id)):
        by_repository[event.repository].append(event)
    prompts = _newest_prompts(lake) if by_repository else {}

    def passage_of(event: FrictionEvent) -> str:
        only = ("id", {event.session_id})
        found = lake.read("raw_sessions", week_of(event.at), Session, only=only)
        return passage(next(iter(found)), event.evidence)

    for repository, own in sorted(by_repository.items()):
        before = [row for row in known if row.repository == repository]
        notes = RepositoryNotes(
            repository=repository, events=tuple(own), prompt_file=prompts.get(repository, "")
        )
        try:
            yield from group_notes(notes, model, passage_of, before)
        except DebriefError as error:
            _ungrouped(run).append(repository)
            if not by.dry_run:
                log_progress(RECURRING, f"{repository}: not grouped: {error}")
            yield from _still_there(before, own)


def _is_grouped(run: StageRun, partition: str, rows: Sequence[RecurringFriction]) -> bool:
    return not _ungrouped(run)


def _friction_shown(run: StageRun, partition: str, rows: list[RecurringFriction]) -> Shown:
    return Shown(f"{len(rows)} recurring", {"lines": ShownPage(advice_markdown(rows))})


RECURRING_FRICTION = Stage(
    table=RECURRING,
    doc="""What went wrong in two sessions of a repository or more, and the line that stops it: the
same command that failed and what then worked, and what a model groups of reviews' notes.""",
    group="friction",
    row_type=RecurringFriction,
    partitions="all",
    version=lambda: (grouping.VERSION, prompt_texts("friction_*.txt")),
    # Passages and prompt files are read of sessions that events name.
    reads=(FRICTION_EVENTS, SESSION_SCORES, Read(RAW_SESSIONS), Read(PROMPT_SNAPSHOTS)),
    made_from=_asker,
    make=_frictions,
    is_final=_is_grouped,
    calls_models=True,
    shown=_friction_shown,
    page="/friction",
    pool=MODEL_POOL,
    may_quote=True,
)


class _SessionStart(Struct, frozen=True):
    """The columns of a session that are needed here."""

    id: str
    repository: str
    started: datetime


class _GivenPrompt(Struct, frozen=True):
    """The columns of a ``prompt_snapshots`` row that are needed here."""

    session_id: str
    origin: str
    main: str = ""


def prompted_sessions(lake: Lake) -> Iterator[PromptedSession]:
    """Yield the sessions of a lake whose prompt files are known, week by week."""
    for week in lake.partitions(SNAPSHOTS):
        heads = {row.id: row for row in lake.read("raw_sessions", week, _SessionStart)}
        for row in lake.read(SNAPSHOTS, week, _GivenPrompt):
            head = heads.get(row.session_id)
            if head is not None and row.origin != "unknown":
                yield PromptedSession(
                    id=head.id, repository=head.repository, started=head.started, prompt=row.main
                )


def _newest_prompts(lake: Lake) -> dict[str, str]:
    """Return the newest prompt files that are known of each repository."""
    ordered = sorted(prompted_sessions(lake), key=lambda session: session.started)
    return {session.repository: session.prompt for session in ordered}


def _answers(run: StageRun, partition: str) -> object:
    return [upstream(run.lake, FACETS, week=week) for week in run.lake.partitions(FACETS)]


def _effects(run: StageRun, partition: str, stored: list[LineEffect]) -> Iterable[LineEffect]:
    frictions = list(run.lake.read(RECURRING, ALL, RecurringFriction))
    asked = {
        id_: {session: facet.found for session, facet in answers.items()}
        for id_, answers in answers_by_question(facets_in(run.lake)).items()
    }
    return effects_of(frictions, prompted_sessions(run.lake), asked)


def refresh_effects(lake: Lake) -> None:
    """Compare sessions before and after lines again, where more was asked about friction."""
    LINE_EFFECTS.fill(StageRun(lake), ALL)


def _effects_shown(run: StageRun, partition: str, rows: list[LineEffect]) -> Shown:
    return Shown(f"{len(rows)} lines about friction", {"page": ShownPage(effects_markdown(rows))})


LINE_EFFECTS = Stage(
    table=EFFECTS,
    doc="""For each line of the prompt files that is about a friction: the share of sessions with
the friction before the line came in and with it, the difference with its 95 % interval, or that it
is too early to tell.""",
    group="friction",
    row_type=LineEffect,
    partitions="all",
    version=lambda: line_effects.VERSION,
    reads=(RECURRING_FRICTION, RAW_SESSIONS, SESSION_SCORES, PROMPT_SNAPSHOTS),
    made_from=_answers,
    make=_effects,
    shown=_effects_shown,
    page="/friction",
    may_quote=True,
)

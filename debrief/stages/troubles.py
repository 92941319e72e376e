"""Troubles: what goes wrong in each session, what recurs in a repository, and did a line help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

from debrief.keys import digest_of
from debrief.models.usage import own_prices, price_of
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.snapshots.model import SNAPSHOTS
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream
from debrief.troubles import finding, grouping, helped
from debrief.troubles.finding import events_of
from debrief.troubles.grouping import find_troubles
from debrief.troubles.helped import SessionStart, line_effects_in
from debrief.troubles.model import ALL, EFFECTS, EVENTS, TROUBLES, LineEffect, Trouble, TroubleEvent


def _event_inputs(run: StageRun, week: str) -> str:
    prices = run.once(
        "prices", lambda: digest_of(own_prices(load_settings().prices), version("litellm"))
    )
    return digest_of(finding.VERSION, upstream(run.lake, "raw_sessions", week=week), prices)


def _events(run: StageRun, week: str, stored: list[TroubleEvent]) -> Iterable[TroubleEvent]:
    own = load_settings().prices
    prices = cache(lambda model: price_of(model, own))
    for session in run.lake.read("raw_sessions", week, Session):
        yield from events_of(session, prices)


TROUBLE_EVENTS = TableStage(table=EVENTS, row_type=TroubleEvent, inputs=_event_inputs, make=_events)


def _trouble_inputs(run: StageRun, partition: str) -> str:
    weeks = run.lake.partitions(EVENTS)
    made_from = [upstream(run.lake, EVENTS, "raw_sessions", week=week) for week in weeks]
    return digest_of(grouping.VERSION, made_from)


def _troubles(run: StageRun, partition: str, stored: list[Trouble]) -> Iterable[Trouble]:
    sessions = Counter(head.repository for head in run.lake.rows("raw_sessions", SessionStart))
    return find_troubles(run.lake.rows(EVENTS, TroubleEvent), sessions)


ALL_TROUBLES = TableStage(table=TROUBLES, row_type=Trouble, inputs=_trouble_inputs, make=_troubles)


def _effect_inputs(run: StageRun, partition: str) -> str:
    made_from = [
        upstream(run.lake, *tables, week=week)
        for tables in ((EVENTS,), (SNAPSHOTS, "raw_sessions"))
        for week in run.lake.partitions(tables[0])
    ]
    return digest_of(helped.VERSION, upstream(run.lake, TROUBLES, week=ALL), made_from)


def _effects(run: StageRun, partition: str, stored: list[LineEffect]) -> Iterable[LineEffect]:
    return line_effects_in(run.lake)


LINE_EFFECTS = TableStage(table=EFFECTS, row_type=LineEffect, inputs=_effect_inputs, make=_effects)

"""Signals: what rules see in each session, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

from debrief.keys import digest_of
from debrief.models.usage import own_prices
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.signals.extract import VERSION, session_signals
from debrief.signals.schema import TABLE, SessionSignals
from debrief.stages.run import StageRun
from debrief.stages.sessions import RAW_SESSIONS
from debrief.stages.shown import Shown, counted_by
from debrief.stages.stage import Stage


def prices_now(run: StageRun, week: str) -> object:
    """Return a digest of the prices that a run knows."""
    return run.once(
        "prices", lambda: digest_of(own_prices(load_settings().prices), version("litellm"))
    )


def _rows(run: StageRun, week: str, stored: list[SessionSignals]) -> Iterable[SessionSignals]:
    own = load_settings().prices
    sessions = run.lake.read(RAW_SESSIONS.table, week, Session)
    return (session_signals(session, own) for session in sessions)


def _shown(run: StageRun, week: str, rows: list[SessionSignals]) -> Shown:
    urgent = sum(bool(row.events) for row in rows)
    events = (event.kind for row in rows for event in row.events)
    return Shown(
        f"{len(rows)} sessions, {urgent} to look at",
        {
            "work": counted_by("kind of work", "sessions", (row.work for row in rows)),
            "events": counted_by("event", "sessions", events),
        },
    )


SESSION_SIGNALS = Stage(
    table=TABLE,
    doc="""What was asked and changed in each session of the week, which checks ran and how they
ended, how the session ends, and what a person would want to look at; each with its evidence. Found
without a model, and no verdict.""",
    group="signals",
    row_type=SessionSignals,
    version=lambda: VERSION,
    reads=(RAW_SESSIONS,),
    made_from=prices_now,
    make=_rows,
    shown=_shown,
)

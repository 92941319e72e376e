"""Signals: what rules see in each session, without a model."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

from debrief.keys import digest_of
from debrief.models.usage import own_prices
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.settings import load_settings
from debrief.signals.extract import VERSION, session_signals
from debrief.signals.schema import TABLE, SessionSignals
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream


def _inputs(run: StageRun, week: str) -> str:
    prices = run.once(
        "prices", lambda: digest_of(own_prices(load_settings().prices), version("litellm"))
    )
    return digest_of(VERSION, upstream(run.lake, SESSIONS_TABLE, week=week), prices)


def _rows(run: StageRun, week: str, stored: list[SessionSignals]) -> Iterable[SessionSignals]:
    own = load_settings().prices
    return (
        session_signals(session, own) for session in run.lake.read(SESSIONS_TABLE, week, Session)
    )


SESSION_SIGNALS = TableStage(table=TABLE, row_type=SessionSignals, inputs=_inputs, make=_rows)

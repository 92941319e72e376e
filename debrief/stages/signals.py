"""Signals: what rules see in each session, without a model."""

from __future__ import annotations

from collections.abc import Iterable

from debrief.keys import digest_of
from debrief.sessions.model import Session
from debrief.sessions.store import SESSIONS_TABLE
from debrief.signals.extract import VERSION, session_signals
from debrief.signals.schema import TABLE, SessionSignals
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream


def _inputs(run: StageRun, week: str) -> str:
    return digest_of(VERSION, upstream(run.lake, SESSIONS_TABLE, week=week))


def _rows(run: StageRun, week: str, stored: list[SessionSignals]) -> Iterable[SessionSignals]:
    return map(session_signals, run.lake.read(SESSIONS_TABLE, week, Session))


SESSION_SIGNALS = TableStage(table=TABLE, row_type=SessionSignals, inputs=_inputs, make=_rows)

"""Outcomes: what sessions' checks say when they are run, and what is known from outside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from debrief.execution.executing import FORM, execute, opened_executor, prepared_now, redacting
from debrief.execution.model import Execution
from debrief.execution.sandbox import SandboxLimits, find_sandbox, why_unavailable
from debrief.keys import digest_of
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones
from debrief.snapshots.rows import repository_at_hand
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import TableStage, upstream

_OFF = "off: DEBRIEF_EXECUTE names no repository whose commands may run"


def _why_off(run: StageRun) -> str:
    """Return why nothing is executed; empty where settings allow it and there is a sandbox."""
    settings = load_settings()
    if not settings.execute:
        return _OFF

    def look() -> str:
        why = why_unavailable()
        return f"no sandbox: {why}" if why else ""

    return run.once("no sandbox", look)


def _execution_inputs(run: StageRun, week: str) -> str:
    return digest_of(
        upstream(run.lake, "raw_sessions", week=week),
        load_settings().execute,
        run.clones.digest,
        prepared_now(load_settings()),
        FORM,
    )


def _executions(run: StageRun, week: str, stored: list[Execution]) -> Iterator[Execution]:
    """Yield a week's rows: of sessions whose repository settings name anew where they are due, of
    all others as they are."""
    settings = load_settings()
    allowed = {name.casefold() for name in settings.execute}
    known, taken = {row.session_id: row for row in stored}, run.scope.ids(run.lake, week)
    redact, now = redacting(run.redactor), datetime.now(UTC)
    sandbox = find_sandbox()
    with opened_executor(settings, sandbox, SandboxLimits(), redact) as executor:
        for session in run.lake.read("raw_sessions", week, Session):
            clone = repository_at_hand(session, run.clones)
            named = session.repository.casefold() in allowed and session.id in taken
            former = None if run.scope.force else known.get(session.id)
            # A transcript may name any repository: the clone has to go by that name itself.
            if named and clone is not None and Clones([clone]).of(session) is not None:
                log_progress(EXECUTED_OUTCOMES.table, f"{week}: {session.id}")
                yield execute(session, clone, executor, former, now)
            elif session.id in known:
                yield known[session.id]


EXECUTED_OUTCOMES = TableStage(
    table="executed_outcomes",
    row_type=Execution,
    inputs=_execution_inputs,
    make=_executions,
    why_off=_why_off,
    is_scoped=True,
)

"""Outcomes: what sessions' checks say when they are run, and what is known from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

from debrief.execution.executing import FORM, execute, opened_executor, prepared_now, redacting
from debrief.execution.model import Execution
from debrief.execution.sandbox import SandboxLimits, find_sandbox, why_unavailable
from debrief.execution.store import EXECUTIONS
from debrief.outcomes.store import LABELS as LABELS_TABLE
from debrief.outcomes.store import Label
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones
from debrief.snapshots.rows import repository_at_hand
from debrief.stages.run import StageRun, log_progress
from debrief.stages.sessions import RAW_SESSIONS
from debrief.stages.shown import Shown, ShownTable
from debrief.stages.stage import Stage

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


def _may_run(run: StageRun, week: str) -> object:
    settings = load_settings()
    return settings.execute, run.clones.digest, prepared_now(settings)


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
                log_progress(EXECUTIONS, f"{week}: {session.id}")
                yield execute(session, clone, executor, former, now)
            elif session.id in known:
                yield known[session.id]


def _executions_shown(run: StageRun, week: str, rows: list[Execution]) -> Shown:
    values = Counter(row.value for row in rows)
    reasons = Counter(row.reason for row in rows if row.reason)
    done, failed = values["yes"], values["no"]
    return Shown(
        f"{done} done, {failed} not done, nothing said of {reasons.total()}",
        {
            "done": done,
            "failed": failed,
            "says_nothing": ShownTable(("reason", "sessions"), reasons.most_common()),
        },
    )


EXECUTED_OUTCOMES = Stage(
    table=EXECUTIONS,
    doc="""What sessions' checks say when they are run before and after their change, in a sandbox.

Off, unless `DEBRIEF_EXECUTE` names repositories: only their commands are run. A session whose
trees, checks and packages are what they were is not run again. Packages are not installed here:
`debrief execute --prepare` does that.""",
    group="outcomes",
    row_type=Execution,
    version=lambda: FORM,
    reads=(RAW_SESSIONS,),
    made_from=_may_run,
    make=_executions,
    why_off=_why_off,
    is_scoped=True,
    shown=_executions_shown,
    pool="execution",
    holds_files=True,
)

LABELS = Stage(
    table=LABELS_TABLE,
    doc="""What is known of sessions from outside: people's labels, and benchmarks' rewards.

Labels come from Langfuse annotations, `human_feedback.md` files and CSV files (`DEBRIEF_LABELS`),
and from the pages; rewards from beside the transcripts; what running says from `executed_outcomes`.
`debrief outcomes` adds what became of the work in its repositories. The first source that says yes
or no decides whether a session succeeded, and its verdict rests on that.""",
    group="outcomes",
    row_type=Label,
    partitions="all",
    reads=(RAW_SESSIONS, EXECUTED_OUTCOMES),
    page="/labels/next",
)

"""Outcomes: what people say of sessions, and what became of the work, before anything is scored."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import PREVIEW_ROWS, markdown, preview
from assets.sessions import raw_sessions
from assets.weekly import Filled, Metadata, StageRun, check, stage, upstream, weekly_stage
from debrief.errors import InputError
from debrief.execution.executing import FORM, execute, opened_executor, prepared_now, redacting
from debrief.execution.model import Execution
from debrief.execution.sandbox import SandboxLimits, find_sandbox, why_unavailable
from debrief.execution.store import executed_labels
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import plain
from debrief.outcomes.gathering import gather_labels
from debrief.outcomes.store import PROBLEMS, LabelProblem, all_labels, put_labels, success_labels
from debrief.sessions.forgotten import Forgotten
from debrief.sessions.model import Session
from debrief.settings import load_settings
from debrief.snapshots.clones import Clones
from debrief.snapshots.rows import repository_at_hand

ALL = "all"
EXECUTION_POOL = "execution"
"""Of the stage that runs commands: with a limit of 1, no two runs share the machine for them."""
_OFF = "off: DEBRIEF_EXECUTE names no repository whose commands may run"


def _off(run: StageRun) -> str:
    """Return why nothing is executed; empty where settings allow it and there is a sandbox."""
    settings = load_settings()
    if not settings.execute:
        return _OFF

    def look() -> str:
        why = why_unavailable(settings.sandbox)
        return f"no sandbox: {why}" if why else ""

    return run.once("no sandbox", look)


def _execution_inputs(run: StageRun, week: str) -> str:
    return digest_of(
        upstream(run.lake, "raw_sessions", week=week),
        load_settings().execute,
        load_settings().sandbox,
        run.once("clones", run.sessions.clones).digest,
        prepared_now(load_settings()),
        FORM,
    )


def _executions(run: StageRun, week: str, stored: list[Execution]) -> Iterator[Execution]:
    """Yield a week's rows: of sessions whose repository settings name anew where they are due, of
    all others as they are."""
    settings, clones = load_settings(), run.once("clones", run.sessions.clones)
    allowed = {name.casefold() for name in settings.execute}
    known, taken = {row.session_id: row for row in stored}, run.scope.ids(run.lake, week)
    redact, now = redacting(run.redactor), datetime.now(UTC)
    sandbox = find_sandbox(settings.sandbox)
    with opened_executor(settings, sandbox, SandboxLimits(), redact) as executor:
        for session in run.lake.read("raw_sessions", week, Session):
            clone = repository_at_hand(session, clones)
            named = session.repository.casefold() in allowed and session.id in taken
            former = None if run.scope.force else known.get(session.id)
            # A transcript may name any repository: the clone has to go by that name itself.
            if named and clone is not None and Clones([clone]).of(session) is not None:
                run.log_progress(f"{week}: {session.id}")
                yield execute(session, clone, executor, former, now)
            elif session.id in known:
                yield known[session.id]


@weekly_stage(
    Execution,
    inputs=_execution_inputs,
    make=_executions,
    scoped=True,
    off=_off,
    group_name="outcomes",
    code_version=versions.EXECUTION,
    deps=[raw_sessions],
    pool=EXECUTION_POOL,
)
def executed_outcomes(run: StageRun, week: str, filled: Filled[Execution]) -> Metadata:
    """What sessions' checks say when they are run before and after their change, in a sandbox.

    Off, unless `DEBRIEF_EXECUTE` names repositories: only their commands are run. A session whose
    trees, checks and packages are what they were is not run again. Packages are not installed
    here: `debrief execute --prepare` does that.
    """
    values = Counter(row.value for row in filled.rows)
    reasons = Counter(row.reason for row in filled.rows if row.reason)
    done, failed, silent = values["yes"], values["no"], reasons.total()
    return {
        "done": done,
        "not_done": failed,
        "says_nothing": dict(reasons),
        "summary": f"{done} done, {failed} not done, nothing said of {silent}",
    }


@stage(
    group_name="outcomes",
    code_version=versions.LABELS,
    deps=[all_of(raw_sessions), all_of(executed_outcomes)],
)
def labels(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """What is known of sessions from outside: people's labels, and benchmarks' rewards.

    Labels come from Langfuse annotations, `human_feedback.md` files and CSV files
    (`DEBRIEF_LABELS`), and from the pages; rewards from beside the transcripts; what running says
    from `executed_outcomes`. `debrief outcomes` adds what became of the work in its repositories.
    The first source that says yes or no decides whether a session succeeded, and its verdict rests
    on that.
    """
    run = StageRun(context)
    lake = run.lake
    problems = gather_labels(
        lake,
        load_settings(),
        run.langfuse.open(),
        context.resources.evaluator.repository_folder(),
        Forgotten.of(lake, run.redactor),
    )
    put_labels(lake, executed_labels(lake))
    known = Counter(label.source for label in all_labels(lake))
    decided = Counter(one.source for one in success_labels(lake).values())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": known.total(),
            "sources": preview(
                ("source", "labels", "sessions that it decides"),
                [(source, count, decided[source]) for source, count in known.items()],
            ),
            "sessions_decided": decided.total(),
            "not_read": len(problems),
            "shown_at": dg.MetadataValue.url("/labels/next"),
        }
    )


@check(labels, lambda lake: [ALL])
def labels_were_read(lake: Lake, _keys: list[str]) -> dg.AssetCheckResult:
    """Every label could be read. When a whole file cannot be used, the run fails, after everything
    else was done."""
    problems = list(lake.read(PROBLEMS, ALL, LabelProblem))
    for problem in problems:
        if problem.whole:
            raise InputError("labels", problem.text.rstrip("."), "Mend the file, then run again.")
    return dg.AssetCheckResult(
        passed=not problems,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "not_read": len(problems),
            "problems": markdown(_list(problems) or "none"),
        },
    )


def _list(problems: Sequence[LabelProblem]) -> str:
    shown = [f"- {plain(problem.text)}" for problem in problems[:PREVIEW_ROWS]]
    more = len(problems) - len(shown)
    return "\n".join([*shown, *[f"- and {more} more"] * bool(more)])

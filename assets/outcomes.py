"""Assets for outcomes: labels that people gave, and whether the work was merged or reverted."""

from collections import Counter
from collections.abc import Sequence

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import PREVIEW_ROWS, markdown, preview
from assets.sessions import raw_sessions
from assets.weekly import ShownWeeks, check, shown_at, stage, weekly_asset
from debrief.errors import InputError
from debrief.execution.store import executed_labels
from debrief.lake import Lake
from debrief.markdown import plain
from debrief.outcomes.gathering import gather_labels
from debrief.outcomes.store import (
    PROBLEMS,
    LabelProblem,
    all_labels,
    only_label_writer,
    put_labels,
    success_labels,
)
from debrief.sessions.forgotten import Forgotten
from debrief.settings import load_settings
from debrief.stages.outcomes import EXECUTED_OUTCOMES
from debrief.stages.run import StageRun
from resources import (
    EvaluatorResource,
    LakeResource,
    LangfuseResource,
    ScopeResource,
    SessionStore,
)

ALL = "all"
EXECUTION_POOL = "execution"
"""Of the stage that runs commands: with a limit of 1, no two runs share the machine for them."""


@weekly_asset(
    group_name="outcomes",
    code_version=versions.EXECUTION,
    deps=[raw_sessions],
    pool=EXECUTION_POOL,
)
def executed_outcomes(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """What sessions' checks say when they are run before and after their change, in a sandbox.

    Off, unless `DEBRIEF_EXECUTE` names repositories: only their commands are run. A session whose
    trees, checks and packages are what they were is not run again. Packages are not installed
    here: `debrief execute --prepare` does that.
    """
    run = StageRun(lake.open(), context.partition_keys, sources=sessions.open(), scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(EXECUTED_OUTCOMES, run):
        values = Counter(row.value for row in filled.rows)
        reasons = Counter(row.reason for row in filled.rows if row.reason)
        done, failed, silent = values["yes"], values["no"], reasons.total()
        weeks.show_filled(
            week,
            filled,
            f"{done} done, {failed} not done, nothing said of {silent}",
            {"done": done, "failed": failed, "says_nothing": dict(reasons)},
        )
    return weeks.result()


@stage(
    group_name="outcomes",
    code_version=versions.LABELS,
    deps=[all_of(raw_sessions), all_of(executed_outcomes)],
)
def labels(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    evaluator: EvaluatorResource,
    langfuse: LangfuseResource,
) -> dg.MaterializeResult[None]:
    """What is known of sessions from outside: people's labels, and benchmarks' rewards.

    Labels come from Langfuse annotations, `human_feedback.md` files and CSV files
    (`DEBRIEF_LABELS`), and from the pages; rewards from beside the transcripts; what running says
    from `executed_outcomes`. `debrief outcomes` adds what became of the work in its repositories.
    The first source that says yes or no decides whether a session succeeded, and its verdict rests
    on that.
    """
    tables = lake.open()
    problems = gather_labels(
        tables,
        load_settings(),
        langfuse.open(),
        evaluator.choice().repository_folder(),
        Forgotten.of(tables, sessions.open().redactor()),
    )
    with only_label_writer(tables, load_settings().home):
        put_labels(tables, executed_labels(tables))
    known = Counter(label.source for label in all_labels(tables))
    decided = Counter(label.source for label in success_labels(tables).values())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": known.total(),
            "sources": preview(
                ("source", "labels", "sessions that it decides"),
                [(source, count, decided[source]) for source, count in known.items()],
            ),
            "sessions_decided": decided.total(),
            "not_read": len(problems),
            **shown_at("/labels/next"),
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

"""Outcomes: what people say of sessions, and what became of the work, before anything is scored."""

from collections import Counter
from collections.abc import Sequence

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import PREVIEW_ROWS, markdown, preview
from assets.sessions import raw_sessions
from assets.weekly import StageRun, check, stage
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.markdown import plain
from debrief.outcomes.gathering import gather_labels
from debrief.outcomes.store import PROBLEMS, LabelProblem, all_labels, success_labels
from debrief.sessions.forgotten import Forgotten
from debrief.settings import load_settings

ALL = "all"


@stage(group_name="outcomes", code_version=versions.LABELS, deps=[all_of(raw_sessions)])
def labels(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """What is known of sessions from outside: people's labels, and benchmarks' rewards.

    Labels come from Langfuse annotations, `human_feedback.md` files and CSV files
    (`DEBRIEF_LABELS`), and from the pages; rewards from beside the transcripts. `debrief outcomes`
    adds what became of the work in its repositories. The first source that says yes or no decides
    whether a session succeeded, and its verdict rests on that.
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

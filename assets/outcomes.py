"""Asset of what is known of sessions from outside: people's labels, benchmarks' rewards."""

from collections import Counter

import dagster as dg

from assets.checks import check
from assets.presentation import metadata_of, table
from assets.stages import TABLE_ROWS, asset_of, shown_at
from debrief.errors import InputError
from debrief.execution.store import executed_labels
from debrief.lake import Lake
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
from debrief.stages.outcomes import LABELS
from debrief.stages.shown import ShownTable
from debrief.stages.stage import ALL
from resources import LangfuseResource, Stages


@asset_of(LABELS)
def labels(
    context: dg.AssetExecutionContext, stages: Stages, langfuse: LangfuseResource
) -> dg.MaterializeResult[None]:
    """Gather labels from every place that has some."""
    run = stages.run(context)
    lake = run.lake
    problems = gather_labels(
        lake,
        load_settings(),
        langfuse.open(),
        stages.options.evaluator.repository_folder(),
        Forgotten.of(lake, run.redactor),
    )
    with only_label_writer(lake, load_settings().home):
        put_labels(lake, executed_labels(lake))
    known = Counter(label.source for label in all_labels(lake))
    decided = Counter(label.source for label in success_labels(lake).values())
    sources = [(source, count, decided[source]) for source, count in known.items()]
    return dg.MaterializeResult(
        metadata={
            TABLE_ROWS: known.total(),
            **metadata_of(
                {
                    "sources": ShownTable(
                        ("source", "labels", "sessions that it decides"), sources
                    ),
                    "sessions_decided": decided.total(),
                    "not_read": len(problems),
                }
            ),
            **shown_at(LABELS.page),
        }
    )


@check(LABELS, lambda lake: [ALL])
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
            "problems": table(ShownTable(("problem",), [(problem.text,) for problem in problems])),
        },
    )

"""Assets and checks of rubrics: consolidated and tested over all weeks."""

import dagster as dg
from pydantic import Field

from assets.checks import check, score_check
from assets.presentation import metadata_of, table
from assets.stages import OFF, TABLE_ROWS, Spending, asset_of, shown_at
from debrief.errors import ModelError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.rubrics.model import ALL, RUBRICS, SETS, UNMINED, Rubric, UnminedSession
from debrief.rubrics.trial import MOST_JUDGEMENTS
from debrief.stages.rubrics import (
    EXTRACTED_RUBRICS,
    FINAL,
    FINAL_RUBRICS,
    RUBRIC_CANDIDATES,
    RUBRIC_EVALUATIONS,
    RUBRIC_TRIALS,
    all_mined,
    drop_other_rubrics,
    final_rubrics_of,
)
from debrief.stages.run import log_progress
from debrief.stages.shown import listed
from debrief.stages.stage import upstream
from debrief.summary import Evaluated
from resources import Stages


@check(EXTRACTED_RUBRICS)
def every_session_mined(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every session that was to be mined was; the next run tries the others again."""
    rows = list(lake.rows(UNMINED, UnminedSession, weeks))
    columns = ("session=session_id", "score name=score_name", "by=extractor", "reason")
    return dg.AssetCheckResult(
        passed=not rows,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"unmined": table(listed(rows, *columns))},
    )


class Trials(dg.Config):
    """How rubrics are tested on unseen sessions."""

    most_judgements: int = Field(
        default=MOST_JUDGEMENTS,
        description=(
            "Judgements that a model gives, for each score name, to test rubrics on sessions that "
            "nothing was mined from; they serve rubric_evaluations as well. A rubric that is not "
            "tested is kept, and says so."
        ),
    )


@asset_of(FINAL)
def rubrics(
    context: dg.AssetExecutionContext, config: Trials, stages: Stages
) -> dg.MaterializeResult[None]:
    """Consolidate and test what was extracted in all weeks."""
    run = stages.run(context)
    run.most_judgements = config.most_judgements
    if off := FINAL.why_off(run):
        log_progress(RUBRICS, f"off: {off}")
        return dg.MaterializeResult(metadata={OFF: off})
    lake, names = run.lake, run.evaluators.score_names
    mined = all_mined(run)
    failures: dict[str, str] = {}
    for score_name in names:
        try:
            RUBRIC_CANDIDATES.fill(run, score_name)
        except ModelError as error:
            failures[score_name] = str(error)
            context.log.error(f"rubrics {score_name} stay as they were: {error}")
    RUBRIC_TRIALS.fill(run, ALL)
    fresh = 0
    if not run.evaluators.dry_run:
        drop_other_rubrics(run)
    for score_name in names:
        if score_name in failures or run.evaluators.dry_run:
            continue
        filled = FINAL_RUBRICS.fill(run, score_name)
        weeks = [row.week for row in mined if row.score_name == score_name]
        if weeks and not filled.skipped:
            lake.write(SETS, f"{score_name}.{max(weeks)}", filled.rows, Rubric)
        fresh += filled.fresh
        unchanged = " (unchanged)" if filled.skipped else ""
        said = f"{score_name}: {counted(len(filled.rows), 'rubric')}{unchanged}"
        log_progress(RUBRICS, said)
    rows = final_rubrics_of(run)
    digest = digest_of([upstream(lake, RUBRICS, week=name) for name in names])
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digest[:16]),
        metadata={
            TABLE_ROWS: len(rows),
            "made_now": fresh,
            **metadata_of(FINAL.shown(run, ALL, rows).figures),
            **shown_at(FINAL.page),
            **Spending().since_shown(run.evaluators),
            **{f"failure_{name}": reason for name, reason in failures.items()},
        },
    )


@score_check(RUBRIC_EVALUATIONS, Evaluated)
def rubric_scores_within_range(row: Evaluated) -> str:
    """Every rubric score is 1 to 5."""
    is_wrong = row.status == "ok" and row.score not in range(1, 6)
    return f"{row.rubric_id}: {row.score}" if is_wrong else ""

"""Rubrics: mined by week, consolidated over all weeks, and every session judged on them."""

from functools import partial

import dagster as dg
from msgspec import structs
from pydantic import Field

from assets import versions
from assets.evaluations import score_check, session_scores
from assets.outcomes import labels
from assets.partitions import all_of
from assets.presentation import listed, markdown, measured, preview
from assets.sessions import raw_sessions
from assets.weekly import MODEL_POOL, ShownWeeks, Spending, check, shown_at, stage, weekly_asset
from debrief.errors import ModelError
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.rubrics.linting import lint
from debrief.rubrics.model import (
    ALL,
    DROPPED,
    RUBRICS,
    SEARCHES,
    SETS,
    UNMINED,
    DroppedRubric,
    Rubric,
    RubricSearch,
    UnminedSession,
)
from debrief.rubrics.page import rubrics_markdown
from debrief.rubrics.trial import MOST_JUDGEMENTS
from debrief.stages.rubrics import (
    EXTRACTED_RUBRICS,
    FINAL_RUBRICS,
    RUBRIC_CANDIDATES,
    RUBRIC_EVALUATIONS,
    RUBRIC_TRIALS,
    all_mined,
    drop_other_rubrics,
    final_rubrics_of,
    of_miner,
)
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import upstream
from debrief.summary import Evaluated
from resources import EvaluatorResource, LakeResource, ScopeResource


@weekly_asset(
    group_name="rubrics",
    code_version=versions.MINING,
    deps=[raw_sessions, session_scores, labels],
    pool=MODEL_POOL,
)
def extracted_rubrics(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """Rubrics that a model extracts from the week's good sessions, one session at a time, for each
    score name, with evidence that was found in the session quoted.

    Every other week is set aside for the test; every other session while there are few. Rubrics
    whose evidence was not found are listed as dropped. Sessions that could not be mined are listed
    too, and the next run tries them again. None without a model.
    """
    by = partial(evaluator.open, context.run)
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open(), evaluators=by)
    weeks, spending = ShownWeeks(context, run.lake), Spending()
    for week, filled in weeks.filled(EXTRACTED_RUBRICS, run):
        dropped = of_miner(run, DROPPED, DroppedRubric, week)
        unmined = of_miner(run, UNMINED, UnminedSession, week)
        summary = f"{len(filled.rows)} candidates, {len(dropped)} dropped"
        weeks.show_filled(
            week,
            filled,
            summary + (f", {len(unmined)} sessions not mined" if unmined else ""),
            {
                "candidates": preview(
                    ("score name", "candidate", "quotations"),
                    [(row.score_name, row.name, len(row.evidence)) for row in filled.rows],
                ),
                "dropped": listed(
                    dropped, "score name=score_name", "what=name", "why=reason", limit=60
                ),
                "unmined": len(unmined),
                "unmined_sessions": listed(
                    unmined, "session=session_id", "score name=score_name", "reason"
                ),
                **spending.since_shown(run.evaluators),
            },
        )
    return weeks.result()


@check(extracted_rubrics)
def every_session_mined(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every session that was to be mined was; the next run tries the others again."""
    rows = list(lake.rows(UNMINED, UnminedSession, weeks))
    return dg.AssetCheckResult(
        passed=not rows,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "unmined": listed(
                rows, "session=session_id", "score name=score_name", "by=extractor", "reason"
            )
        },
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


@stage(
    group_name="rubrics",
    pool=MODEL_POOL,
    code_version=versions.RUBRICS,
    deps=[all_of(extracted_rubrics), all_of(raw_sessions), all_of(session_scores), labels],
)
def rubrics(
    context: dg.AssetExecutionContext,
    config: Trials,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """The final five to ten rubrics of each score name.

    What was extracted in all weeks is consolidated, and tested on sessions that nothing was mined
    from. Every rubric is kept, with what these say of it: it tells good ones from bad ones, it does
    not, or they are too few to tell. Corrected for all candidates that were looked at.
    """
    run = StageRun(
        lake.open(),
        scope=scope.open(),
        evaluators=partial(evaluator.open, context.run),
        most_judgements=config.most_judgements,
    )
    tables = run.lake
    mined = all_mined(run)
    names = run.evaluators.score_names
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
            tables.write(SETS, f"{score_name}.{max(weeks)}", filled.rows, Rubric)
        fresh += filled.fresh
        unchanged = " (unchanged)" if filled.skipped else ""
        said = f"{score_name}: {counted(len(filled.rows), 'rubric')}{unchanged}"
        log_progress(RUBRICS, said)
    rows = final_rubrics_of(run)
    searches = list(tables.read(SEARCHES, ALL, RubricSearch))
    marks = [
        (name, *structs.astuple(mark))
        for name in names
        for mark in lint([row for row in rows if row.score_name == name])
    ]
    page = rubrics_markdown(rows, searches=searches)
    digest = digest_of([upstream(tables, RUBRICS, week=name) for name in names])
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digest[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": fresh,
            "page": markdown(page),
            **shown_at("/rubrics"),
            "linter": preview(("score name", "rubric", "rule", "what"), marks),
            "mined": len(mined),
            "tell_good_from_bad": sum(row.finding == "tells" for row in rows),
            **Spending().since_shown(run.evaluators),
            **{f"failure_{name}": reason for name, reason in failures.items()},
        },
    )


@weekly_asset(
    group_name="rubrics",
    code_version=versions.RUBRIC_EVALUATIONS,
    deps=[raw_sessions, rubrics],
    pool=MODEL_POOL,
)
def rubric_evaluations(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """Each session of the week on each rubric, from 1 to 5, with the reasoning."""
    by = partial(evaluator.open, context.run)
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open(), evaluators=by)
    weeks, spending = ShownWeeks(context, run.lake), Spending()
    for week, filled in weeks.filled(RUBRIC_EVALUATIONS, run):
        rows = filled.rows
        failed = sum(row.status == "failed" for row in rows)
        suspected = sorted({row.session_id for row in rows if row.injection_suspected})
        summary = f"{len(rows)} evaluations on {len(final_rubrics_of(run))} rubrics"
        summary += f", {failed} failed" if failed else ""
        weeks.show_filled(
            week,
            filled,
            summary + (f", {len(suspected)} sessions to look at" if suspected else ""),
            {
                "evaluations": measured(
                    "rubric", ((f"{row.score_name}/{row.rubric_key}", row.score) for row in rows)
                ),
                "failed": failed,
                "injection_suspected": len(suspected),
                "injection_suspected_sessions": preview(
                    ("session",), [(id_,) for id_ in suspected]
                ),
                **spending.since_shown(run.evaluators),
            },
        )
    return weeks.result()


@score_check(rubric_evaluations, Evaluated)
def rubric_scores_within_range(row: Evaluated) -> str:
    """Every rubric score is 1 to 5."""
    is_wrong = row.status == "ok" and row.score not in range(1, 6)
    return f"{row.rubric_id}: {row.score}" if is_wrong else ""

"""Rubrics: mined by week, consolidated by score name, and every session held against them."""

import logging
from collections.abc import Iterator
from functools import partial

import dagster as dg

from assets.partitions import ONE_RUN, SCORES, all_of
from assets.presentation import preview
from assets.scoring import session_scores
from assets.sessions import raw_sessions
from assets.spending import POOL, Spending
from assets.weekly import (
    PROGRESS,
    Metadata,
    checked,
    counted,
    each_week,
    fill,
    upstream,
    weekly_asset,
)
from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.rubrics.extraction import EARLIER_WEEKS
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.linting import lint
from debrief.rubrics.model import ExtractedRubric, Rubric, RubricEvaluation, RubricMiner
from debrief.rubrics.page import rubrics_markdown
from debrief.scoring.model import SCORE_NAMES, ScoreName, SessionScores
from debrief.sessions.model import Session
from debrief.weeks import week_after
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource

EXTRACTED, TABLE, EVALUATIONS = "extracted_rubrics", "rubrics", "rubric_evaluations"
WITH_EARLIER = dg.TimeWindowPartitionMapping(
    start_offset=-EARLIER_WEEKS, allow_nonexistent_upstream_partitions=True
)


@weekly_asset(
    group_name="rubrics",
    pool=POOL,
    deps=[
        dg.AssetDep(raw_sessions, partition_mapping=WITH_EARLIER),
        dg.AssetDep(session_scores, partition_mapping=WITH_EARLIER),
    ],
    description=(
        "What sets the week's best sessions apart from its worst, for each score name: rubrics "
        "with effect size and with evidence that was found in the sessions quoted. A small week "
        "is ranked together with the three before it, and says so."
    ),
)
def extracted_rubrics(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Mine the weeks."""
    tables = lake.open()
    evaluators = evaluator.open(context.run_id)
    spending = Spending(evaluators)
    miner, mark = evaluators.miner, evaluators.scoring_fingerprint

    def one_week(week: str) -> Metadata:
        earlier = [week_after(week, -back) for back in range(EARLIER_WEEKS, 0, -1)]

        def make(previous: list[ExtractedRubric]) -> Iterator[ExtractedRubric]:
            scores = _scores(tables, [week], mark)
            earlier_scores = _scores(tables, earlier, mark)
            for score_name in SCORE_NAMES:
                yield from miner.extract(
                    tables.read("raw_sessions", week, Session),
                    scores,
                    score_name,
                    week,
                    (s for w in earlier for s in tables.read("raw_sessions", w, Session)),
                    earlier_scores,
                )
            yield from (row for row in previous if row.extractor != miner.name)

        made_from = digest_of(
            [upstream(tables, "raw_sessions", "session_scores", week=w) for w in (*earlier, week)],
            mark,
            miner.name,
        )
        rows = fill(
            tables, EXTRACTED, week, ExtractedRubric, made_from, make, dry=evaluators.dry_run
        ).rows
        return {
            **counted(rows),
            "rubrics": preview(
                ("score name", "rubric", "effect", "best/worst", "evidence"),
                [
                    (
                        row.score_name,
                        row.name,
                        row.effect_size,
                        f"{row.best_count}/{row.worst_count}",
                        row.evidence[0].quote if row.evidence else "",
                    )
                    for row in rows
                ],
            ),
            **spending.metadata(),
            "told": f"{len(rows)} mined",
        }

    return each_week(context, one_week)


@dg.asset(
    partitions_def=SCORES,
    backfill_policy=ONE_RUN,
    group_name="rubrics",
    pool=POOL,
    owners=["team:debrief"],
    kinds={"python", "parquet"},
    deps=[all_of(extracted_rubrics)],
    description=(
        "The final rubrics of a score name, merged over all weeks: what to do to get sessions "
        "that are better in that sense, how strongly it showed, and what it was mined from."
    ),
)
def rubrics(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Consolidate what was mined."""
    tables = lake.open()
    evaluators = evaluator.open(context.run_id)
    spending = Spending(evaluators)
    miner = evaluators.miner
    mined = [
        row
        for week in tables.partitions(EXTRACTED)
        for row in tables.read(EXTRACTED, week, ExtractedRubric)
        if row.extractor == miner.name
    ]
    for key in context.partition_keys:
        score_name = _score_name(key)
        source = [row for row in mined if row.score_name == score_name]
        make = partial(_consolidated, miner, source, score_name)
        made_from = digest_of(miner.name, source)
        rows = fill(tables, TABLE, key, Rubric, made_from, make, dry=evaluators.dry_run).rows
        logging.getLogger(PROGRESS).info(f"rubrics {key}: {len(rows)} from {len(source)} mined")
        marks = lint(rows)
        context.add_asset_metadata(
            {
                **counted(rows),
                "page": dg.MetadataValue.md(rubrics_markdown(rows, extracted=source, marks=marks)),
                "linter": preview(
                    ("rubric", "rule", "what"), [(m.rubric_id, m.rule, m.message) for m in marks]
                ),
                "mined": len(source),
                **spending.metadata(),
            },
            partition_key=key,
        )
    return dg.MaterializeResult()


@weekly_asset(
    group_name="rubrics",
    pool=POOL,
    deps=[raw_sessions, all_of(rubrics)],
    description="Each session of the week on each rubric, from 1 to 5, with the reasoning.",
)
def rubric_evaluations(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Hold the weeks' sessions against the rubrics."""
    tables = lake.open()
    evaluators = evaluator.open(context.run_id)
    spending = Spending(evaluators)
    judge_by = evaluators.rubric_judge
    final = [rubric for name in SCORE_NAMES for rubric in tables.read(TABLE, name, Rubric)]

    def one_week(week: str) -> Metadata:
        def make(previous: list[RubricEvaluation]) -> Iterator[RubricEvaluation]:
            yield from evaluate_rubrics(
                tables.read("raw_sessions", week, Session),
                final,
                judge_by,
                previous,
                workers=evaluators.concurrency,
            )

        rows = fill(
            tables,
            EVALUATIONS,
            week,
            RubricEvaluation,
            digest_of(upstream(tables, "raw_sessions", week=week), final, judge_by.model),
            make,
            done=lambda row: row.status != "failed",
            dry=evaluators.dry_run,
        ).rows
        return {
            **counted(rows),
            "evaluations": preview(
                ("session", "score name", "rubric", "score", "reasoning or failure"),
                [
                    (r.session_id, r.score_name, r.rubric_key, r.score, r.reasoning or r.failure)
                    for r in rows
                ],
            ),
            "failed": sum(row.status == "failed" for row in rows),
            **spending.metadata(),
            "told": f"{len(rows)} evaluations on {len(final)} rubrics",
        }

    return each_week(context, one_week)


@dg.asset_check(asset=rubric_evaluations, description="Every rubric score is 1 to 5.")
def rubric_scores_within_range(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look at every row of the run's weeks."""
    tables = lake.open()
    rows = [
        row
        for w in checked(context, tables, EVALUATIONS)
        for row in tables.read(EVALUATIONS, w, RubricEvaluation)
    ]
    outside = [r for r in rows if r.status == "ok" and r.score not in range(1, 6)]
    failed = [
        (row.session_id, row.rubric_id, row.failure) for row in rows if row.status == "failed"
    ]
    return dg.AssetCheckResult(
        passed=not outside and not failed,
        severity=dg.AssetCheckSeverity.ERROR if outside else dg.AssetCheckSeverity.WARN,
        metadata={
            "rows": len(rows),
            "outside": preview(
                ("session", "rubric", "score"),
                [(row.session_id, row.rubric_id, row.score) for row in outside],
            ),
            "failed": preview(("session", "rubric", "reason"), failed),
        },
    )


def _scores(lake: Lake, weeks: list[str], mark: str) -> list[SessionScores]:
    return [
        row
        for week in weeks
        for row in lake.read("session_scores", week, SessionScores)
        if row.scoring_fingerprint == mark
    ]


def _consolidated(
    miner: RubricMiner, mined: list[ExtractedRubric], score_name: ScoreName, _: list[Rubric]
) -> list[Rubric]:
    return miner.consolidate(mined, score_name)


def _score_name(key: str) -> ScoreName:
    return next(name for name in SCORE_NAMES if name == key)

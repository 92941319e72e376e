"""Rubrics: mined by week, consolidated by score name, and every session held against them."""

import logging
from collections.abc import Collection, Iterator
from functools import partial

import dagster as dg
from pydantic import Field

from assets import versions
from assets.made_from import (
    earlier_weeks,
    final_rubrics,
    held_from,
    mined_from,
    words_of,
)
from assets.partitions import ONE_RUN, SCORES, all_of
from assets.presentation import preview
from assets.progress import PROGRESS
from assets.rubric_views import judged_shown, mined_shown, set_shown
from assets.scope import scope
from assets.scoring import session_scores
from assets.sessions import raw_sessions
from assets.spending import POOL, Spending
from assets.weekly import (
    Filled,
    Metadata,
    checked,
    completed,
    data_version,
    digests_of,
    each_week,
    fill,
    upstream,
    weekly_asset,
    working,
)
from debrief.digests import digest_of
from debrief.errors import ModelError
from debrief.evaluators import Evaluators
from debrief.lake import Lake, Row
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import (
    DROPPED,
    EVALUATIONS,
    EXTRACTED,
    RUBRICS,
    SETS,
    TRIALS,
    UNMINED,
    DroppedRubric,
    ExtractedRubric,
    Mined,
    Rubric,
    RubricEvaluation,
    RubricTrial,
    UnminedSession,
)
from debrief.rubrics.offline_miner import EARLIER_WEEKS
from debrief.rubrics.trials import TrialOptions, try_rubrics
from debrief.scoring.model import SCORE_NAMES, ScoreName, SessionScores
from debrief.sessions.model import Session
from debrief.summary import Held
from debrief.weeks import week_of
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource

WITH_EARLIER = dg.TimeWindowPartitionMapping(
    start_offset=-EARLIER_WEEKS, allow_nonexistent_upstream_partitions=True
)
_JUDGEMENTS_OFFLINE = 2_000


@weekly_asset(
    group_name="rubrics",
    pool=POOL,
    code_version=versions.MINING,
    deps=[
        dg.AssetDep(raw_sessions, partition_mapping=WITH_EARLIER),
        dg.AssetDep(session_scores, partition_mapping=WITH_EARLIER),
    ],
    description=(
        "What sets the week's best sessions apart from its worst, for each score name: rubrics "
        "with effect size and with evidence that was found in the sessions quoted. A small week "
        "is ranked together with the three before it, and says so. What was looked at and dropped "
        "is told as well, and which sessions could not be mined: the next run tries them again."
    ),
)
def extracted_rubrics(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Mine the weeks."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    spending = Spending(evaluators)
    miner, mark = evaluators.miner, evaluators.scoring_fingerprint

    def one_week(week: str) -> Metadata:
        earlier = earlier_weeks(week)
        mined: list[Mined] = []

        def make(previous: list[ExtractedRubric]) -> Iterator[ExtractedRubric]:
            scores = _scores(tables, [week], mark)
            earlier_scores = _scores(tables, earlier, mark)
            for score_name in SCORE_NAMES:
                found = miner.extract(
                    tables.read("raw_sessions", week, Session),
                    scores,
                    score_name,
                    week,
                    (s for w in earlier for s in tables.read("raw_sessions", w, Session)),
                    earlier_scores,
                )
                mined.append(found)
                yield from found.rubrics
            yield from (row for row in previous if row.extractor != miner.name)

        made_from = mined_from(tables, evaluators, week)
        dry = evaluators.dry_run
        filled = fill(tables, EXTRACTED, week, ExtractedRubric, made_from, make, dry=dry)
        if not filled.skipped and not dry:
            _file_the_rest(tables, week, miner.name, mined)
        dropped = _of(tables, DROPPED, week, DroppedRubric, miner.name)
        unmined = _of(tables, UNMINED, week, UnminedSession, miner.name)
        if unmined and not filled.skipped and not dry:
            tables.write(EXTRACTED, week, filled.rows, ExtractedRubric)
        told = f"{len(filled.rows)} mined, {len(dropped)} dropped"
        return {
            **mined_shown(filled.rows, dropped, unmined),
            **spending.metadata(),
            "told": told + (f", {len(unmined)} sessions not mined" if unmined else ""),
        }

    return each_week(context, tables, one_week)


@dg.asset_check(
    asset=extracted_rubrics,
    description="Every session that was to be mined was; the next run tries the others again.",
)
def every_session_mined(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look at what the run's weeks left unmined."""
    tables = lake.open()
    rows = [
        row
        for week in checked(context, tables, UNMINED)
        for row in tables.read(UNMINED, week, UnminedSession)
    ]
    return dg.AssetCheckResult(
        passed=not rows,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "unmined": preview(
                ("session", "score name", "by", "reason"),
                [(row.session_id, row.score_name, row.extractor, row.reason) for row in rows],
            )
        },
    )


class Trials(dg.Config):
    """How rubrics are tried before they are kept."""

    most_judgements: int = Field(
        default=TrialOptions().most_judgements,
        description=(
            "Judgements that a model gives, for each score name, to hold rubrics against sessions "
            "that they were not mined from; they serve rubric_evaluations as well. 0: rubrics are "
            "kept untried. Offline costs nothing and is not bound by it."
        ),
    )

    def options(self, evaluators: Evaluators) -> TrialOptions:
        """Return the library's form of this."""
        offline = evaluators.models is None and self.most_judgements > 0
        return TrialOptions(
            most_judgements=_JUDGEMENTS_OFFLINE if offline else self.most_judgements
        )


@dg.asset(
    partitions_def=SCORES,
    backfill_policy=ONE_RUN,
    group_name="rubrics",
    pool=POOL,
    code_version=versions.RUBRICS,
    owners=["team:debrief"],
    kinds={"python", "parquet"},
    deps=[all_of(extracted_rubrics), all_of(raw_sessions), all_of(session_scores)],
    description=(
        "The final rubrics of a score name, merged over all weeks: what to do to get sessions "
        "that are better in that sense, how strongly it showed, and what it was mined from. A "
        "rubric is kept when it separates sessions that it was not mined from."
    ),
)
def rubrics(
    context: dg.AssetExecutionContext,
    config: Trials,
    lake: LakeResource,
    evaluator: EvaluatorResource,
) -> dg.MaterializeResult[None]:
    """Consolidate what was mined, and try it."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    spending = Spending(evaluators)
    miner, mark = evaluators.miner, evaluators.scoring_fingerprint
    options = config.options(evaluators)
    mined = [row for row in _all(tables, EXTRACTED, ExtractedRubric) if row.extractor == miner.name]
    weeks = tables.partitions("session_scores")
    ground = [upstream(tables, "raw_sessions", "session_scores", week=week) for week in weeks]
    scores = _scores(tables, weeks, mark)
    judged = partial(_judged_before, tables, evaluators.rubric_judge.model)

    def make(
        source: list[ExtractedRubric],
        score_name: ScoreName,
        trials: list[RubricTrial],
        previous: list[Rubric],
    ) -> Iterator[Rubric]:
        tried = try_rubrics(
            miner.consolidate(source, score_name, previous),
            partial(_sessions, tables, scores),
            scores,
            evaluators.rubric_judge,
            judged(),
            options=options,
            workers=evaluators.concurrency,
        )
        trials += tried.trials
        yield from tried.rubrics

    for key in context.partition_keys:
        score_name = next(name for name in SCORE_NAMES if name == key)
        source = [row for row in mined if row.score_name == score_name]
        trials: list[RubricTrial] = []
        made_from = digest_of(
            miner.name,
            source,
            ground,
            mark,
            evaluators.rubric_judge.model,
            options,
            *words_of(miner),
            *words_of(evaluators.rubric_judge),
        )
        failure = ""
        try:
            with working(context, tables, RUBRICS, key):
                filled = fill(
                    tables,
                    RUBRICS,
                    key,
                    Rubric,
                    made_from,
                    partial(make, source, score_name, trials),
                    done=lambda _, trials=trials: not any(trial.failed for trial in trials),  # type: ignore[misc]
                    dry=evaluators.dry_run,
                )
        except ModelError as error:
            failure = str(error)
            context.log.error(f"rubrics {key} stay as they were: {failure}")
            filled = Filled(list(tables.read(RUBRICS, key, Rubric)), changed=False, skipped=True)
        if not filled.skipped and not evaluators.dry_run:
            tables.write(TRIALS, key, trials, RubricTrial)
            if source:
                last = max(row.week for row in source)
                tables.write(SETS, f"{key}.{last}", filled.rows, Rubric)
        trials = list(tables.read(TRIALS, key, RubricTrial))
        dropped = sum(not trial.kept for trial in trials)
        told = failure or (
            "unchanged" if filled.skipped else f"{dropped} dropped on other sessions"
        )
        logging.getLogger(PROGRESS).info(
            "rubrics %s: %d from %d mined (%s)", key, len(filled.rows), len(source), told
        )
        context.add_asset_metadata(
            {
                **set_shown(filled.rows, source, trials) | {"made_now": filled.fresh},
                **spending.metadata(),
                **({"failure": failure} if failure else {}),
            },
            partition_key=key,
        )
    digests = digests_of(tables, RUBRICS, context.partition_keys)
    return dg.MaterializeResult(data_version=data_version(context, digests))


@weekly_asset(
    group_name="rubrics",
    pool=POOL,
    code_version=versions.RUBRIC_EVALUATIONS,
    deps=[raw_sessions, all_of(rubrics)],
    description="Each session of the week on each rubric, from 1 to 5, with the reasoning.",
)
def rubric_evaluations(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Hold the weeks' sessions against the rubrics."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    spending = Spending(evaluators)
    judge_by = evaluators.rubric_judge
    final = final_rubrics(tables)

    def one_week(week: str) -> Metadata:
        def make(previous: list[RubricEvaluation]) -> Iterator[RubricEvaluation]:
            made = evaluate_rubrics(
                scope().sessions(tables, week),
                final,
                judge_by,
                scope().reusable(previous),
                workers=evaluators.concurrency,
            )
            yield from completed(tables, week, made, previous)

        filled = fill(
            tables,
            EVALUATIONS,
            week,
            RubricEvaluation,
            held_from(tables, evaluators, week, final),
            make,
            done=lambda row: row.status != "failed",
            dry=evaluators.dry_run,
            narrowed=True,
        )
        shown = judged_shown(filled.rows)
        told = f"{len(filled.rows)} evaluations on {len(final)} rubrics"
        told += " (unchanged)" if filled.skipped else ""
        told += f", {shown['failed']} failed" if shown["failed"] else ""
        if shown["injection_suspected"]:
            told += f", {shown['injection_suspected']} sessions to look at"
        return {**shown, **spending.metadata(), "told": told}

    return each_week(context, tables, one_week)


@dg.asset_check(asset=rubric_evaluations, description="Every rubric score is 1 to 5.")
def rubric_scores_within_range(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look at every row of the run's weeks."""
    tables = lake.open()
    rows = [
        row
        for week in checked(context, tables, EVALUATIONS)
        for row in tables.read(EVALUATIONS, week, Held)
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


def _file_the_rest(tables: Lake, week: str, extractor: str, mined: list[Mined]) -> None:
    """File what mining dropped and could not mine, beside what other extractors did."""
    others = [r for r in tables.read(DROPPED, week, DroppedRubric) if r.extractor != extractor]
    dropped = [row for found in mined for row in found.dropped]
    tables.write(DROPPED, week, [*dropped, *others], DroppedRubric)
    left = [r for r in tables.read(UNMINED, week, UnminedSession) if r.extractor != extractor]
    unmined = [row for found in mined for row in found.unmined]
    tables.write(UNMINED, week, [*unmined, *left], UnminedSession)


def _of(tables: Lake, table: str, week: str, row_type: type[Row], extractor: str) -> list[Row]:
    return list(tables.read(table, week, row_type, only=("extractor", [extractor])))


def _all(tables: Lake, table: str, row_type: type[Row]) -> Iterator[Row]:
    for week in tables.partitions(table):
        yield from tables.read(table, week, row_type)


def _judged_before(tables: Lake, model: str) -> list[RubricEvaluation]:
    return [row for row in _all(tables, EVALUATIONS, RubricEvaluation) if row.model == model]


def _sessions(tables: Lake, scores: list[SessionScores], ids: Collection[str]) -> Iterator[Session]:
    weeks = {week_of(row.started) for row in scores if row.session_id in set(ids)}
    for week in sorted(weeks):
        yield from tables.read("raw_sessions", week, Session, only=("id", ids))


def _scores(lake: Lake, weeks: list[str], mark: str) -> list[SessionScores]:
    return [
        row
        for week in weeks
        for row in lake.read("session_scores", week, SessionScores)
        if row.scoring_fingerprint == mark
    ]

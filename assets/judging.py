"""Judging: what each judge says of each session's change."""

from collections.abc import Iterator

import dagster as dg

from assets import versions
from assets.made_from import judged_from
from assets.partitions import add_pairs
from assets.presentation import preview
from assets.scope import scope
from assets.sessions import raw_sessions
from assets.snapshots import session_metadata
from assets.spending import POOL, Spending
from assets.weekly import (
    Metadata,
    checked,
    completed,
    counted,
    each_week,
    fill,
    weekly_asset,
)
from debrief.evaluation import EvaluationCounts
from debrief.judging.evaluation import evaluate_week, weighted_average
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.pairs import pairs_of
from resources.evaluator import EvaluatorResource
from resources.lake import LakeResource

TABLE = "judge_evaluations"


@weekly_asset(
    group_name="judging",
    pool=POOL,
    code_version=versions.JUDGING,
    deps=[raw_sessions, session_metadata],
    description=(
        "What each judge of `judges/` says of each session's change: a score from 0 to 1 with "
        "feedback, who judged, tokens and cost. A session that failed is a row with its reason "
        "and is tried again by the next run; what was judged is not judged again."
    ),
)
def judge_evaluations(
    context: dg.AssetExecutionContext, lake: LakeResource, evaluator: EvaluatorResource
) -> dg.MaterializeResult[None]:
    """Judge the weeks' sessions, and make the pairs that show up partitions."""
    tables = lake.open()
    evaluators = evaluator.open(context.run)
    spending = Spending(evaluators)
    mark = evaluators.eval_fingerprint
    if not evaluators.dry_run:
        tables.write(JUDGE_SETS, mark, evaluators.judges, Judge)

    def one_week(week: str) -> Metadata:
        counts = EvaluationCounts()

        def make(previous: list[JudgeEvaluation]) -> Iterator[JudgeEvaluation]:
            made = evaluate_week(
                scope().sessions(tables, week),
                evaluators.judges,
                evaluators.change_judge,
                mark,
                scope().reusable(previous),
                counts=counts,
                concurrency=evaluators.concurrency,
            )
            own = [row for row in previous if row.eval_fingerprint == mark]
            yield from completed(tables, week, made, own)
            yield from _of_other_judges(tables, week, previous, mark)

        filled = fill(
            tables,
            TABLE,
            week,
            JudgeEvaluation,
            judged_from(tables, evaluators, week),
            make,
            done=lambda row: row.status == "ok",
            dry=evaluators.dry_run,
            narrowed=True,
        )
        metadata = tables.read("session_metadata", week, SessionMetadataRow)
        add_pairs(context.instance, pairs_of(metadata, filled.rows))
        current = [row for row in filled.rows if row.eval_fingerprint == mark]
        mean = weighted_average(current)
        work = f"{counts.evaluated} new, {counts.reused} as before, {counts.failed} failed"
        work = "unchanged" if filled.skipped else work.removesuffix(", 0 failed")
        return {
            **counted(filled.rows),
            "judgements": preview(
                ("session", "judge", "score", "feedback or failure"),
                [(r.session_id, r.judge, r.score, r.feedback or r.failure) for r in current],
            ),
            **({"weighted_mean": round(mean, 4)} if mean is not None else {}),
            "judged_now": counts.evaluated,
            "taken_over": len(current) - counts.evaluated - counts.failed,
            "failed": sum(row.status == "failed" for row in current),
            "eval_fingerprint": mark,
            "judged_by": evaluators.name,
            **spending.metadata(),
            "told": f"{len(current)} judgements ({work})",
        }

    return each_week(context, tables, one_week)


def _of_other_judges(
    lake: Lake, week: str, previous: list[JudgeEvaluation], mark: str
) -> Iterator[JudgeEvaluation]:
    """Keep what other judges or models said of sessions that are still the same."""
    digests = {head.id: head.digest for head in lake.read("raw_sessions", week, SessionHead)}
    for row in previous:
        same = digests.get(row.session_id) == row.session_digest
        if row.eval_fingerprint != mark and row.status == "ok" and same:
            yield row


@dg.asset_check(asset=judge_evaluations, description="Every judge gave a score in 0…1.")
def judge_scores_within_range(
    context: dg.AssetCheckExecutionContext, lake: LakeResource
) -> dg.AssetCheckResult:
    """Look at every row of the run's weeks."""
    tables = lake.open()
    rows = [
        r for w in checked(context, tables, TABLE) for r in tables.read(TABLE, w, JudgeEvaluation)
    ]
    outside = [r for r in rows if r.score is not None and not 0 <= r.score <= 1]
    failed = [row for row in rows if row.status == "failed"]
    return dg.AssetCheckResult(
        passed=not outside and not failed,
        severity=dg.AssetCheckSeverity.ERROR if outside else dg.AssetCheckSeverity.WARN,
        metadata={
            "rows": len(rows),
            "outside": preview(("session", "judge", "score"), [_named(row) for row in outside]),
            "failed": preview(
                ("session", "judge", "reason"),
                [(row.session_id, row.judge, row.failure) for row in failed],
            ),
        },
    )


def _named(row: JudgeEvaluation) -> tuple[str, str, float | None]:
    return row.session_id, row.judge, row.score

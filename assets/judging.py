"""Judging: what each judge says of each session's change."""

from collections.abc import Iterable

from assets import versions
from assets.partitions import add_pairs
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.snapshots import session_metadata
from assets.weekly import (
    Filled,
    Metadata,
    StageRun,
    all_ok,
    evaluated,
    score_check,
    upstream,
    weekly_stage,
)
from debrief.digests import digest_of
from debrief.evaluation import version_of
from debrief.judging.evaluation import evaluate_week, weighted_average
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.pairs import pairs_of


def _inputs(run: StageRun, week: str) -> str:
    return digest_of(
        upstream(run.lake, "raw_sessions", week=week),
        run.evaluators.eval_digest,
        version_of(run.evaluators.change_judge),
    )


def _judge(run: StageRun, week: str, stored: list[JudgeEvaluation]) -> Iterable[JudgeEvaluation]:
    by = run.evaluators
    if not by.dry_run:
        run.lake.write(JUDGE_SETS, by.eval_fingerprint, by.judges, Judge)
    return evaluated(
        run,
        week,
        stored,
        lambda sessions, previous: evaluate_week(
            sessions,
            by.judges,
            by.change_judge,
            by.eval_fingerprint,
            previous,
            concurrency=by.concurrency,
        ),
        is_own=lambda row: row.eval_fingerprint == by.eval_fingerprint,
    )


@weekly_stage(
    JudgeEvaluation,
    inputs=_inputs,
    make=_judge,
    is_final=all_ok,
    calls_models=True,
    scoped=True,
    group_name="judging",
    code_version=versions.JUDGING,
    deps=[raw_sessions, session_metadata],
    description=(
        "What each judge of `judges/` says of each session's change: a score from 0 to 1 with "
        "feedback, who judged, tokens and cost. A session that failed is a row with its reason "
        "and is tried again by the next run; what was judged is not judged again."
    ),
)
def judge_evaluations(run: StageRun, week: str, filled: Filled[JudgeEvaluation]) -> Metadata:
    """Judge a week's sessions, and make the pairs that show up partitions."""
    metadata = run.lake.read("session_metadata", week, SessionMetadataRow)
    add_pairs(run.context.instance, pairs_of(metadata, filled.rows))
    fingerprint = run.evaluators.eval_fingerprint
    current = [row for row in filled.rows if row.eval_fingerprint == fingerprint]
    failed = sum(row.status == "failed" for row in current)
    mean = weighted_average(current)
    return {
        "judgements": preview(
            ("session", "judge", "score", "feedback or failure"),
            [(r.session_id, r.judge, r.score, r.feedback or r.failure) for r in current],
        ),
        **({"weighted_mean": round(mean, 4)} if mean is not None else {}),
        "failed": failed,
        "eval_fingerprint": fingerprint,
        "judged_by": run.evaluators.name,
        "summary": f"{len(current)} judgements, {filled.fresh} new"
        + f", {failed} failed" * bool(failed),
    }


judge_scores_within_range = score_check(
    "judge_scores_within_range",
    judge_evaluations,
    JudgeEvaluation,
    lambda row: (
        f"{row.judge}: {row.score}" if row.score is not None and not 0 <= row.score <= 1 else ""
    ),
    description="Every judge gave a score in 0…1.",
)

"""Assets and checks of judging and scoring: judgements, reviews, scores on Langfuse."""

from collections import Counter

import dagster as dg

from assets.checks import check, score_check
from assets.partitions import add_pairs
from assets.presentation import metadata_of
from assets.stages import StageView, asset_of, fill, weeks_of
from debrief.errors import LangfuseError
from debrief.evaluation import holds_answer
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt, UnreviewedSession
from debrief.langfuse.scores import write_scores
from debrief.markdown import counted
from debrief.outcomes.labels import annotations_of
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.dimensions import problem_of
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.stages.evaluations import (
    JUDGE_EVALUATIONS,
    LANGFUSE_SCORES,
    SESSION_SCORES,
    current_judgements,
)
from debrief.stages.shown import tallied
from debrief.stages.signals import SESSION_SIGNALS
from debrief.training.manifest import current_pairs, note_judges
from resources import LangfuseResource, Stages

NOT_CONFIGURED = (
    "No Langfuse server is configured, so the scores stay in the lake. Set LANGFUSE_HOST, "
    "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY and materialise this again."
)


@asset_of(JUDGE_EVALUATIONS)
def judge_evaluations(
    context: dg.AssetExecutionContext, stages: Stages
) -> dg.MaterializeResult[None]:
    """Have the changes of a run's weeks judged, and make the observed pairs partitions."""
    run = stages.run(context, weeks_of(context))
    result = fill(context, run, JUDGE_EVALUATIONS)
    by = run.evaluators
    if not by.dry_run:
        if by.models is not None:
            rows = run.lake.rows(JUDGE_EVALUATIONS.table, JudgeEvaluation, run.weeks)
            answered = any(map(holds_answer, current_judgements(run, rows)))
            note_judges(run.lake, by.eval_fingerprint, has_answered=answered)
        add_pairs(context.instance, current_pairs(run.lake, run.weeks))
    return result


@score_check(JUDGE_EVALUATIONS, JudgeEvaluation)
def judge_scores_within_range(row: JudgeEvaluation) -> str:
    """Every judge gave a score in 0…1."""
    return "" if row.score is None or 0 <= row.score <= 1 else f"{row.judge}: {row.score}"


@score_check(SESSION_SCORES, SessionScores)
def session_scores_within_range(row: SessionScores) -> str:
    """Every score is within its range and every category one of its dimension's."""
    return problem_of(row)


@asset_of(LANGFUSE_SCORES)
def langfuse_scores(
    context: dg.AssetExecutionContext, stages: Stages, langfuse: LangfuseResource
) -> dg.MaterializeResult[None]:
    """Write the scores of a run's weeks to the server, and keep the receipts."""
    run = stages.run(context, weeks_of(context))
    lake, table, redactor = run.lake, LANGFUSE_SCORES.table, run.redactor

    def redact(text: str) -> str:
        return redactor.redact(text).text

    view = StageView(context, lake, LANGFUSE_SCORES)
    client = langfuse.open()
    annotations = annotations_of(lake, redact) if client is not None else {}
    verdicts = verdicts_in(lake) if client is not None else {}
    for week in run.weeks:
        if lake.stamp(SESSION_SIGNALS.table, week) is None:
            continue
        stored = list(lake.read(table, week, ScoreReceipt))
        if client is None:
            lake.write(table, week, stored, ScoreReceipt)
            view.show(week, len(stored), "no server configured", {"server": NOT_CONFIGURED})
            continue
        reviews = {
            row.session_id: row
            for row in effective_rows(lake.read(SESSION_SCORES.table, week, SessionScores))
            if row.status == "ok"
        }
        to_score = {*reviews, *verdicts, *annotations, *(receipt.session_id for receipt in stored)}
        receipts = write_scores(
            client,
            [
                reviews.get(session.session_id, session)
                for session in lake.read(SESSION_SIGNALS.table, week, UnreviewedSession)
                if session.session_id in to_score
            ],
            stored,
            verdicts=verdicts,
            annotations=annotations,
            options=langfuse.options(),
            redact=redact,
        )
        lake.write(table, week, receipts, ScoreReceipt)
        count = Counter(receipt.status for receipt in receipts)
        failed = sum(receipt.is_missing for receipt in receipts)
        view.show(
            week,
            len(receipts),
            f"{count['written']} of {count['written'] + failed} confirmed by {client.host}"
            + f", {count['kept']} kept: it does not have their sessions" * bool(count["kept"]),
            metadata_of(
                {
                    "server": client.host,
                    "written": count["written"],
                    "failed": failed,
                    "of_sessions_that_the_server_does_not_have": count["kept"],
                    "receipts": tallied(receipts, "score=name", "status", "reason"),
                }
            ),
        )
    return view.result()


@check(LANGFUSE_SCORES)
def scores_are_written(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every score that the server should have was read back from it. If not, the run fails, after
    everything else was done; the next one tries again."""
    receipts = list(lake.rows(LANGFUSE_SCORES.table, ScoreReceipt, weeks))
    missing = [receipt for receipt in receipts if receipt.is_missing]
    if missing:
        ((reason, _),) = Counter(receipt.reason for receipt in missing).most_common(1)
        sessions = {receipt.session_id for receipt in missing}
        what = f"{counted(len(missing), 'score')} of {counted(len(sessions), 'session')}"
        raise LangfuseError(
            missing[0].host,
            f"does not have {what}: {reason.rstrip('.')}",
            "The next run sends them again.",
        )
    return dg.AssetCheckResult(passed=True, metadata={"receipts": len(receipts)})

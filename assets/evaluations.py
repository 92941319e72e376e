"""Assets for judging and scoring: judges on each change, six dimensions, scores to Langfuse."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import dagster as dg

from assets import versions
from assets.outcomes import labels
from assets.partitions import add_pairs
from assets.presentation import listed, measured, preview, tallied
from assets.sessions import raw_sessions, session_metadata
from assets.signals import session_signals
from assets.weekly import MODEL_POOL, Metadata, ShownWeeks, Spending, check, weekly_asset
from debrief.errors import LangfuseError
from debrief.evaluation import holds_answer
from debrief.judging.evaluation import weighted_average
from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake, Row
from debrief.langfuse.outgoing import ScoreReceipt, UnreviewedSession
from debrief.langfuse.scores import write_scores
from debrief.markdown import counted
from debrief.outcomes.labels import annotations_of
from debrief.outcomes.verdicts import verdicts_in
from debrief.scoring.dimensions import OVERALL, problem_of
from debrief.scoring.model import SessionScores
from debrief.scoring.precedence import effective_rows
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.signals.schema import TABLE as SIGNALS
from debrief.stages.evaluations import JUDGE_EVALUATIONS, SESSION_SCORES
from debrief.stages.run import StageRun
from debrief.training.manifest import current_pairs, note_judges
from resources import (
    EvaluatorResource,
    LakeResource,
    LangfuseResource,
    ScopeResource,
    SessionStore,
)

RECEIPTS = "langfuse_scores"
LANGFUSE_POOL = "langfuse"
"""Of what writes to the server: a limit on it holds over all runs of an instance."""
NOT_CONFIGURED = (
    "No Langfuse server is configured, so the scores stay in the lake. Set LANGFUSE_HOST, "
    "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY and materialise this again."
)


def score_check(
    asset: dg.AssetsDefinition, row_type: type[Row]
) -> Callable[[Callable[[Row], str]], dg.AssetChecksDefinition]:
    """Return a decorator for a check that no row of a run's weeks has a problem, and none failed.

    What it decorates says what is wrong with a row; empty when nothing is.

    Args:
        asset: whose table is read.
        row_type: its rows, with ``session_id``, ``status`` and ``failure``.
    """

    def decorate(problem: Callable[[Row], str]) -> dg.AssetChecksDefinition:
        def look(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
            rows: list[Any] = list(lake.rows(asset.key.to_user_string(), row_type, weeks))
            outside = [(row.session_id, wrong) for row in rows if (wrong := problem(row))]
            failed = [row for row in rows if row.status == "failed"]
            answering = {row.model for row in rows if holds_answer(row)}
            silent = sorted({row.model for row in failed} - answering)
            is_error = bool(outside or silent)
            return dg.AssetCheckResult(
                passed=not outside and not failed,
                severity=dg.AssetCheckSeverity.ERROR if is_error else dg.AssetCheckSeverity.WARN,
                description=f"{' and '.join(silent)} answered nothing." if silent else None,
                metadata={
                    "rows": len(rows),
                    "outside": preview(("session", "problem"), outside),
                    "failed": listed(failed, "session=session_id", "reason=failure"),
                },
            )

        look.__name__, look.__doc__ = problem.__name__, problem.__doc__
        return check(asset)(look)

    return decorate


@weekly_asset(
    group_name="judging",
    code_version=versions.JUDGING,
    deps=[raw_sessions, session_metadata],
    pool=MODEL_POOL,
)
def judge_evaluations(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """What each judge of `judges/` says of each session's change: a score from 0 to 1 with
    feedback, who judged, tokens and cost.

    A session that failed is a row with its reason and is tried again by the next run; what was
    judged is not judged again. Of a session without a change no judge is asked.
    """
    by = partial(evaluator.open, context.run)
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open(), evaluators=by)
    weeks, spending = ShownWeeks(context, run.lake), Spending()
    for week, filled in weeks.filled(JUDGE_EVALUATIONS, run):
        fingerprint = run.evaluators.eval_fingerprint
        current = [row for row in filled.rows if row.eval_fingerprint == fingerprint]
        failed = sum(row.status == "failed" for row in current)
        if not run.evaluators.dry_run:
            note_judges(run.lake, fingerprint, has_answered=any(map(holds_answer, current)))
        unchanged = {row.session_id for row in current if row.status == "no_change"}
        suspected = {row.session_id for row in current if row.injection_suspected}
        mean = weighted_average(current)
        weeks.show_filled(
            week,
            filled,
            f"{len(current)} judgements, {filled.fresh} new"
            + f", {failed} failed" * bool(failed)
            + f", {len(unchanged)} sessions changed nothing" * bool(unchanged)
            + f", {len(suspected)} sessions to look at" * bool(suspected),
            {
                "judgements": measured("judge", ((row.judge, row.score) for row in current)),
                **({"weighted_mean": round(mean, 4)} if mean is not None else {}),
                "failed": failed,
                "sessions_without_a_change": len(unchanged),
                "injection_suspected": len(suspected),
                "eval_fingerprint": fingerprint,
                "judged_by": run.evaluators.name,
                **spending.since_shown(run.evaluators),
            },
        )
    pairs = current_pairs(run.lake, context.partition_keys)
    if pairs and not run.evaluators.dry_run:
        add_pairs(context.instance, pairs)
    return weeks.result()


@score_check(judge_evaluations, JudgeEvaluation)
def judge_scores_within_range(row: JudgeEvaluation) -> str:
    """Every judge gave a score in 0…1."""
    return "" if row.score is None or 0 <= row.score <= 1 else f"{row.judge}: {row.score}"


@weekly_asset(
    group_name="scoring",
    code_version=versions.SCORING,
    deps=[raw_sessions, session_signals],
    pool=MODEL_POOL,
)
def session_scores(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """An LLM review of each session: its verdict as far as signals let it stand, six dimensions
    and `overall_quality`, each with a rationale and its evidence by turn. None without a model.

    A session too long for one call is cut into chunks by tokens, none over budget, and put
    together again. Beside them the two computed efficiencies: lasting lines per 1,000 tokens and
    per human turn.
    """
    by = partial(evaluator.open, context.run)
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open(), evaluators=by)
    weeks, spending = ShownWeeks(context, run.lake), Spending()
    for week, filled in weeks.filled(SESSION_SCORES, run):
        fingerprint = run.evaluators.scoring_fingerprint
        current = [row for row in filled.rows if row.scoring_fingerprint == fingerprint]
        summary, shown = _scores_shown(current)
        scored_by = {"scored_by": run.evaluators.name}
        spent = spending.since_shown(run.evaluators)
        weeks.show_filled(week, filled, summary, {**shown, **scored_by, **spent})
    return weeks.result()


def _scores_shown(current: list[SessionScores]) -> tuple[str, Metadata]:
    """Return a week's reviews in a few words, and what is shown of them."""
    scores = [row.overall_quality for row in current if row.overall_quality is not None]
    reviewed = sum(row.status == "ok" for row in current)
    chunked = sum(len(row.chunks) > 1 for row in current)
    suspected = sum(row.injection_suspected for row in current)
    verdicts = Counter(row.verdict.verdict for row in current if row.verdict is not None)
    stopped = Counter(
        row.verdict.objection for row in current if row.verdict and row.verdict.objection
    )
    summary = (
        f"{reviewed} reviewed, {chunked} in several chunks"
        + f", {stopped.total()} stopped by a signal" * bool(stopped)
        + f", {suspected} to look at" * bool(suspected)
    )
    return summary, {
        "verdicts": {name: verdicts[name] for name in VERDICT_NAMES},
        "stopped_by_a_signal": {str(name): count for name, count in stopped.items()},
        "scores": measured("dimension", _values(current)),
        **({"mean_overall_quality": round(sum(scores) / len(scores), 4)} if scores else {}),
        "in_several_chunks": chunked,
        "failed": sum(row.status == "failed" for row in current),
        "injection_suspected": suspected,
    }


def _values(rows: Iterable[SessionScores]) -> Iterator[tuple[str, float | None]]:
    """Yield the overall quality of each session, and its dimensions."""
    for row in rows:
        yield OVERALL, row.overall_quality
        yield from ((verdict.dimension, verdict.value) for verdict in row.dimension_scores)


@score_check(session_scores, SessionScores)
def session_scores_within_range(row: SessionScores) -> str:
    """Every score is within its range and every category one of its dimension's."""
    return problem_of(row)


@weekly_asset(
    group_name="scoring",
    code_version=versions.LANGFUSE,
    pool=LANGFUSE_POOL,
    deps=[session_signals, session_scores, labels],
)
def langfuse_scores(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    sessions: SessionStore,
    langfuse: LangfuseResource,
) -> dg.MaterializeResult[None]:
    """Receipts: which scores, and labels given here, were written to the Langfuse sessions they
    belong to, and read back; once a day the server is asked whether it still has them.

    One score for each session and name, updated in place: the verdict that counts, with its basis,
    and the scores of its LLM review. A session on which nobody spoke has none. Without a
    configured server it says so and writes nothing.
    """
    tables, redactor = lake.open(), sessions.open().redactor()

    def redact(text: str) -> str:
        return redactor.redact(text).text

    weeks = ShownWeeks(context, tables)
    client = langfuse.open()
    annotations = annotations_of(tables, redact) if client is not None else {}
    verdicts = verdicts_in(tables) if client is not None else {}
    for week in weeks:
        if tables.stamp(SIGNALS, week) is None:
            weeks.show_none(week)
            continue
        stored = list(tables.read(RECEIPTS, week, ScoreReceipt))
        if client is None:
            tables.write(RECEIPTS, week, stored, ScoreReceipt)
            shown = {"server": NOT_CONFIGURED}
            weeks.show(week, len(stored), "no server configured", shown)
            continue
        reviews = {
            row.session_id: row
            for row in effective_rows(tables.read("session_scores", week, SessionScores))
            if row.status == "ok"
        }
        to_score = {*reviews, *verdicts, *annotations, *(receipt.session_id for receipt in stored)}
        receipts = write_scores(
            client,
            [
                reviews.get(session.session_id, session)
                for session in tables.read(SIGNALS, week, UnreviewedSession)
                if session.session_id in to_score
            ],
            stored,
            verdicts=verdicts,
            annotations=annotations,
            options=langfuse.options(),
            redact=redact,
        )
        tables.write(RECEIPTS, week, receipts, ScoreReceipt)
        count = Counter(receipt.status for receipt in receipts)
        failed = sum(receipt.is_missing for receipt in receipts)
        weeks.show(
            week,
            len(receipts),
            f"{count['written']} of {count['written'] + failed} confirmed by {client.host}"
            + f", {count['kept']} kept: it does not have their sessions" * bool(count["kept"]),
            {
                "server": client.host,
                "written": count["written"],
                "failed": failed,
                "of_sessions_that_the_server_does_not_have": count["kept"],
                "receipts": tallied(receipts, "score=name", "status", "reason"),
            },
        )
    return weeks.result()


@check(langfuse_scores)
def scores_are_written(lake: Lake, weeks: list[str]) -> dg.AssetCheckResult:
    """Every score that the server should have was read back from it. If not, the run fails, after
    everything else was done; the next one tries again."""
    receipts = list(lake.rows("langfuse_scores", ScoreReceipt, weeks))
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

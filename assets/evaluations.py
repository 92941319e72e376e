"""Judging and scoring: what judges say of each change, six dimensions, their way to Langfuse."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import dagster as dg
from msgspec import Struct

from assets import versions
from assets.outcomes import labels
from assets.partitions import add_pairs
from assets.presentation import listed, measured, preview, tallied
from assets.sessions import raw_sessions, session_metadata
from assets.weekly import (
    COUNT,
    Filled,
    Metadata,
    Row,
    StageRun,
    check,
    upstream,
    weekly_asset,
    weekly_stage,
)
from debrief.errors import LangfuseError
from debrief.evaluation import version_of
from debrief.evaluators import OFFLINE, Evaluators
from debrief.judging.evaluation import evaluate_week, weighted_average
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.langfuse.scores import write_scores
from debrief.markdown import counted
from debrief.outcomes.labels import annotations_of
from debrief.outcomes.store import success_labels
from debrief.scoring.dimensions import OVERALL, problem_of
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_week, verdict_version
from debrief.scoring.speaking import speaking_rows
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.sessions.model import Session, SessionHead
from debrief.training.manifest import current_pairs, note_judges

LANGFUSE_POOL = "langfuse"
"""Of what writes to the server: a limit on it holds over all runs of an instance."""
NOT_CONFIGURED = (
    "No Langfuse server is configured, so the scores stay in the lake. Set LANGFUSE_HOST, "
    "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY and materialise this again."
)


class SessionIds(Struct, frozen=True):
    """The column of sessions that outcomes are found by."""

    id: str


Stage = Callable[[Callable[[StageRun, str, Filled[Row]], Metadata]], dg.AssetsDefinition]


def evaluation_stage(
    row_type: type[Row],
    made_by: Callable[[StageRun], tuple[object, ...]],
    evaluate: Callable[[StageRun, Evaluators, Iterable[Session], list[Row]], Iterable[Row]],
    is_own: Callable[[Evaluators, Row], bool] = lambda by, row: True,
    second: bool = True,
    of_week: Callable[[StageRun, str], object] = lambda run, week: (),
    **options: Any,
) -> Stage[Row]:
    """Return a decorator for a weekly stage whose rows judge or score each session of a week.

    Only the sessions of the run's scope are; a week with a failed row is tried again.

    Args:
        row_type: the table's rows.
        made_by: what the rows depend on beside the sessions.
        evaluate: makes the rows of sessions by evaluators, taking over what it can of stored ones.
        is_own: says whether a stored row is by evaluators. Rows by others than this run's stay
            while their session is what it was.
        second: whether a second model evaluates as well, where there is one.
        of_week: what the rows of a week depend on beside that.
        options: of the asset.
    """

    def inputs(run: StageRun, week: str) -> str:
        return digest_of(
            upstream(run.lake, "raw_sessions", week=week), *made_by(run), of_week(run, week)
        )

    def make(run: StageRun, week: str, stored: list[Any]) -> list[Any]:
        lake, scope = run.lake, run.scope
        each = run.evaluators.each if second else (run.evaluators,)

        def own(row: Any) -> bool:
            return any(is_own(by, row) for by in each)

        heads = {head.id: head for head in lake.read("raw_sessions", week, SessionHead)}
        known = [] if scope.force else stored
        rows: list[Any] = [
            row for by in each for row in evaluate(run, by, scope.sessions(lake, week), known)
        ]
        if scope.where:
            outside = heads.keys() - scope.ids(lake, week)
            rows += [row for row in stored if own(row) and row.session_id in outside]
            order = {name: number for number, name in enumerate(heads)}
            rows.sort(key=lambda row: order[row.session_id])
        current = {(head.id, head.digest) for head in heads.values()}
        return rows + [
            row
            for row in stored
            if not own(row)
            and row.status != "failed"
            and (row.session_id, row.session_digest) in current
        ]

    return weekly_stage(
        row_type,
        inputs=inputs,
        make=make,
        is_final=lambda run, week, rows: not any(map(_is_open, rows)),
        calls_models=True,
        scoped=True,
        **options,
    )


def _is_open(row: Any) -> bool:
    """Return whether the next run has something to ask again for a row."""
    return row.status == "failed" or bool(getattr(row, "second_failure", ""))


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
            return dg.AssetCheckResult(
                passed=not outside and not failed,
                severity=dg.AssetCheckSeverity.ERROR if outside else dg.AssetCheckSeverity.WARN,
                metadata={
                    "rows": len(rows),
                    "outside": preview(("session", "problem"), outside),
                    "failed": listed(failed, "session=session_id", "reason=failure"),
                },
            )

        look.__name__, look.__doc__ = problem.__name__, problem.__doc__
        return check(asset)(look)

    return decorate


def _judge(
    run: StageRun, by: Evaluators, sessions: Iterable[Session], stored: list[JudgeEvaluation]
) -> Iterable[JudgeEvaluation]:
    if not by.dry_run:
        run.lake.write(JUDGE_SETS, by.eval_fingerprint, by.judges, Judge)
    return evaluate_week(
        sessions,
        by.judges,
        by.session_judge,
        by.eval_fingerprint,
        stored,
        concurrency=by.concurrency,
    )


@evaluation_stage(
    JudgeEvaluation,
    lambda run: tuple(
        part
        for by in run.evaluators.each
        for part in (by.eval_digest, version_of(by.session_judge))
    ),
    _judge,
    lambda by, row: row.eval_fingerprint == by.eval_fingerprint,
    group_name="judging",
    code_version=versions.JUDGING,
    deps=[raw_sessions, session_metadata],
)
def judge_evaluations(run: StageRun, week: str, filled: Filled[JudgeEvaluation]) -> Metadata:
    """What each judge of `judges/` says of each session's change: a score from 0 to 1 with
    feedback, who judged, tokens and cost.

    A session that failed is a row with its reason and is tried again by the next run; what was
    judged is not judged again. Of a session without a change no judge is asked.
    """
    fingerprint = run.evaluators.eval_fingerprint
    if not run.evaluators.dry_run:
        run.once("judges", lambda: note_judges(run.lake, fingerprint))
        add_pairs(run.context.instance, current_pairs(run.lake, [week]))
    current = [row for row in filled.rows if row.eval_fingerprint == fingerprint]
    failed = sum(row.status == "failed" for row in current)
    unchanged = {row.session_id for row in current if row.status == "no_change"}
    suspected = {row.session_id for row in current if row.injection_suspected}
    mean = weighted_average(current)
    return {
        "judgements": measured("judge", ((row.judge, row.score) for row in current)),
        **({"weighted_mean": round(mean, 4)} if mean is not None else {}),
        "failed": failed,
        "sessions_without_a_change": len(unchanged),
        "injection_suspected": len(suspected),
        "eval_fingerprint": fingerprint,
        "judged_by": run.evaluators.name,
        "summary": f"{len(current)} judgements, {filled.fresh} new"
        + f", {failed} failed" * bool(failed)
        + f", {len(unchanged)} sessions changed nothing" * bool(unchanged)
        + f", {len(suspected)} sessions to look at" * bool(suspected),
    }


@score_check(judge_evaluations, JudgeEvaluation)
def judge_scores_within_range(row: JudgeEvaluation) -> str:
    """Every judge gave a score in 0…1."""
    return "" if row.score is None or 0 <= row.score <= 1 else f"{row.judge}: {row.score}"


def _outcomes(run: StageRun) -> dict[str, tuple[bool, str]]:
    """Return what is known of sessions from outside: labels, and what became of the work."""
    return run.once(
        "outcomes",
        lambda: {
            id_: (known.success, known.source) for id_, known in success_labels(run.lake).items()
        },
    )


def _outcomes_of_week(run: StageRun, week: str) -> object:
    heads = run.lake.read("raw_sessions", week, SessionIds)
    known = _outcomes(run)
    return sorted((head.id, *known[head.id]) for head in heads if head.id in known)


@evaluation_stage(
    SessionScores,
    lambda run: (*(by.scoring_fingerprint for by in run.evaluators.each), verdict_version()),
    lambda run, by, sessions, stored: score_week(
        sessions, by.chunk_scorer, stored, concurrency=by.concurrency, outcomes=_outcomes(run)
    ),
    # The offline evaluator's rows of another version are out of date, and cost nothing to make.
    lambda by, row: (
        row.scoring_fingerprint == by.scoring_fingerprint
        or row.model == by.name == OFFLINE
        # What a model said alone is beside the second opinion, or is the same.
        or (row.model == by.name and by.has_second_opinion)
    ),
    of_week=_outcomes_of_week,
    group_name="scoring",
    code_version=versions.SCORING,
    deps=[raw_sessions, labels],
)
def session_scores(run: StageRun, week: str, filled: Filled[SessionScores]) -> Metadata:
    """The verdict on each session with its ground; six dimensions and `overall_quality`, each with
    a rationale and its evidence by turn.

    A session too long for one call is cut into chunks by tokens, none over budget, and put
    together again. Beside them the two computed efficiencies: lasting lines per 1,000 tokens and
    per human turn.
    """
    fingerprint = run.evaluators.scoring_fingerprint
    current = [row for row in filled.rows if row.scoring_fingerprint == fingerprint]
    scores = [row.overall_quality for row in current if row.overall_quality is not None]
    scored = sum(row.status == "ok" for row in current)
    chunked = sum(len(row.chunks) > 1 for row in current)
    silent = scored - len(scores)
    suspected = sum(row.injection_suspected for row in current)
    verdicts = Counter(row.verdict.verdict for row in current if row.verdict is not None)
    opinions = Counter(row.first_opinion.reason for row in current if row.first_opinion is not None)
    without = sum(bool(row.second_failure) for row in current)
    return {
        "verdicts": {name: verdicts[name] for name in VERDICT_NAMES},
        "scores": measured("dimension", _values(current)),
        **({"mean_overall_quality": round(sum(scores) / len(scores), 4)} if scores else {}),
        "in_several_chunks": chunked,
        "failed": sum(row.status == "failed" for row in current),
        "injection_suspected": suspected,
        "scored_by": run.evaluators.name,
        **(_second_opinions(current) if run.evaluators.has_second_opinion else {}),
        "summary": f"{scored} scored, {chunked} in several chunks"
        + f", {opinions.total()} by a second opinion" * bool(opinions)
        + f", {without} still without theirs" * bool(without)
        + f", {silent} without a number" * bool(silent)
        + f", {suspected} to look at" * bool(suspected),
    }


def _second_opinions(rows: Iterable[SessionScores]) -> Metadata:
    """Return how often another model was asked, why, and what that cost beyond the first."""
    asked = [(row, row.first_opinion) for row in rows if row.first_opinion is not None]
    costs = [
        row.cost_usd - (first.cost_usd or 0.0) for row, first in asked if row.cost_usd is not None
    ]
    return {
        "second_opinions": dict(Counter(first.reason for _, first in asked)),
        "second_opinions_tokens": sum(
            row.input_tokens + row.output_tokens - first.input_tokens - first.output_tokens
            for row, first in asked
        ),
        **({"second_opinions_cost_usd": round(sum(costs), 6)} if costs else {}),
    }


def _values(rows: Iterable[SessionScores]) -> Iterator[tuple[str, float | None]]:
    """Yield the overall quality of each session, and its dimensions."""
    for row in rows:
        yield OVERALL, row.overall_quality
        yield from ((verdict.dimension, verdict.value) for verdict in row.verdicts)


@score_check(session_scores, SessionScores)
def session_scores_within_range(row: SessionScores) -> str:
    """Every score is within its range and every category one of its dimension's."""
    return problem_of(row)


@weekly_asset(
    group_name="scoring",
    code_version=versions.LANGFUSE,
    pool=LANGFUSE_POOL,
    deps=[session_scores],
)
def langfuse_scores(run: StageRun, week: str) -> Metadata | None:
    """Receipts: which scores, and labels given here, were written to the Langfuse sessions they
    belong to, and read back; once a day the server is asked whether it still has them.

    One score for each session and name, updated in place; of several scorers the one that speaks
    for the session. Without a configured server it says so and writes nothing.
    """
    lake = run.lake
    if lake.stamp("session_scores", week) is None:
        return None
    client = run.once("client", run.langfuse.open)
    stored = list(lake.read(run.name, week, ScoreReceipt))
    if client is None:
        lake.write(run.name, week, stored, ScoreReceipt)
        return {COUNT: len(stored), "server": NOT_CONFIGURED, "summary": "no server configured"}
    scores = lake.read("session_scores", week, SessionScores)

    def redact(text: str) -> str:
        return run.redactor.redact(text).text

    receipts = write_scores(
        client,
        speaking_rows(scores),
        stored,
        annotations=run.once("annotations", lambda: annotations_of(lake, redact)),
        options=run.langfuse.options(),
        redact=redact,
    )
    lake.write(run.name, week, receipts, ScoreReceipt)
    count = Counter(receipt.status for receipt in receipts)
    failed = sum(receipt.is_missing for receipt in receipts)
    return {
        COUNT: len(receipts),
        "server": client.host,
        "written": count["written"],
        "failed": failed,
        "of_sessions_that_the_server_does_not_have": count["kept"],
        "former_ones_that_the_server_is_yet_to_delete": count["replaced"],
        "receipts": tallied(receipts, "score=name", "status", "reason"),
        "summary": f"{count['written']} of {count['written'] + failed} confirmed by {client.host}"
        + f", {count['kept']} kept: it does not have their sessions" * bool(count["kept"])
        + f", {count['replaced']} former ones to be deleted there" * bool(count["replaced"]),
    }


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

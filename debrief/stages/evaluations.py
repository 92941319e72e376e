"""Judging and scoring: what judges say of each change, and six dimensions of each session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from debrief.evaluation import version_of
from debrief.judging.evaluation import evaluate_week, weighted_average
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.langfuse.outgoing import ScoreReceipt
from debrief.scoring.dimensions import OVERALL
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_week, verdict_version
from debrief.scoring.verdict import VERDICT_NAMES
from debrief.sessions.model import Session, SessionHead
from debrief.stages.outcomes import LABELS
from debrief.stages.run import StageRun
from debrief.stages.sessions import RAW_SESSIONS, SESSION_METADATA
from debrief.stages.shown import Shown, ShownTable, measured
from debrief.stages.signals import SESSION_SIGNALS
from debrief.stages.stage import Read, Stage
from debrief.stages.versions import SCORER, judge_texts, prompt_texts

EvaluationRow = TypeVar("EvaluationRow", bound=Struct)
MODEL_POOL = "language_model"
"""Of every stage that asks a model: with a limit of 1, no two runs ask the same at once."""


def evaluated_rows(
    run: StageRun,
    week: str,
    stored: Sequence[EvaluationRow],
    evaluate: Callable[[Iterable[Session], Sequence[EvaluationRow]], Iterable[EvaluationRow]],
    is_own: Callable[[Any], bool],
) -> list[EvaluationRow]:
    """Return the rows that judge or score each session of a week that is in the run's scope.

    Rows of sessions outside of it stay, and so do those by others than this run's evaluators while
    their session is what it was.

    Args:
        run: the run.
        week: the week.
        stored: its rows, with ``session_id``, ``session_digest`` and ``status``.
        evaluate: makes the rows of sessions, taking over what it can of stored ones.
        is_own: says whether a stored row is by this run's evaluators.
    """
    lake, scope = run.lake, run.scope
    heads = {head.id: head for head in lake.read("raw_sessions", week, SessionHead)}
    known = [] if scope.force else stored
    rows: list[Any] = list(evaluate(scope.sessions(lake, week), known))
    before: Sequence[Any] = stored
    if scope.where:
        outside = heads.keys() - scope.ids(lake, week)
        rows += [row for row in before if is_own(row) and row.session_id in outside]
        order = {name: number for number, name in enumerate(heads)}
        rows.sort(key=lambda row: order[row.session_id])
    current = {(head.id, head.digest) for head in heads.values()}
    return rows + [
        row
        for row in before
        if not is_own(row)
        and row.status != "failed"
        and (row.session_id, row.session_digest) in current
    ]


def none_open(run: StageRun, week: str, rows: Sequence[Any]) -> bool:
    """Return whether the next run has nothing to ask again for a row."""
    return not any(row.status == "failed" for row in rows)


def why_no_model(run: StageRun) -> str:
    """Return that no model is configured; empty where one is."""
    return "" if run.evaluators.models is not None else "no model is configured"


def _judges(run: StageRun, week: str) -> object:
    return run.evaluators.eval_digest, version_of(run.evaluators.session_judge)


def _judge(run: StageRun, week: str, stored: list[JudgeEvaluation]) -> Iterable[JudgeEvaluation]:
    by = run.evaluators

    def evaluate(
        sessions: Iterable[Session], known: Sequence[JudgeEvaluation]
    ) -> Iterable[JudgeEvaluation]:
        if not by.dry_run:
            run.lake.write(JUDGE_SETS, by.eval_fingerprint, by.judges, Judge)
        return evaluate_week(
            sessions,
            by.judges,
            by.session_judge,
            by.eval_fingerprint,
            known,
            concurrency=by.concurrency,
        )

    def is_own(row: JudgeEvaluation) -> bool:
        return row.eval_fingerprint == by.eval_fingerprint

    return evaluated_rows(run, week, stored, evaluate, is_own)


def current_judgements(run: StageRun, rows: Iterable[JudgeEvaluation]) -> list[JudgeEvaluation]:
    """Return the rows by the judges of the run."""
    return [row for row in rows if row.eval_fingerprint == run.evaluators.eval_fingerprint]


def _judgements_shown(run: StageRun, week: str, rows: list[JudgeEvaluation]) -> Shown:
    current = current_judgements(run, rows)
    failed = sum(row.status == "failed" for row in current)
    unchanged = {row.session_id for row in current if row.status == "no_change"}
    suspected = {row.session_id for row in current if row.injection_suspected}
    mean = weighted_average(current)
    return Shown(
        f"{len(current)} judgements"
        + f", {failed} failed" * bool(failed)
        + f", {len(unchanged)} sessions changed nothing" * bool(unchanged)
        + f", {len(suspected)} sessions to look at" * bool(suspected),
        {
            "judgements": measured("judge", ((row.judge, row.score) for row in current)),
            **({"weighted_mean": round(mean, 4)} if mean is not None else {}),
            "failed": failed,
            "sessions_without_a_change": len(unchanged),
            "injection_suspected": len(suspected),
            "eval_fingerprint": run.evaluators.eval_fingerprint,
            "judged_by": run.evaluators.name,
        },
    )


JUDGE_EVALUATIONS = Stage(
    table="judge_evaluations",
    doc="""What each judge of `judges/` says of each session's change: a score from 0 to 1 with
feedback, who judged, tokens and cost.

A session that failed is a row with its reason and is tried again by the next run; what was judged
is not judged again. Of a session without a change no judge is asked.""",
    group="judging",
    row_type=JudgeEvaluation,
    version=lambda: (judge_texts(), prompt_texts(*SCORER)),
    reads=(RAW_SESSIONS, Read(SESSION_METADATA)),
    made_from=_judges,
    make=_judge,
    is_final=none_open,
    why_off=why_no_model,
    calls_models=True,
    is_scoped=True,
    shown=_judgements_shown,
    pool=MODEL_POOL,
)


def _reviewer(run: StageRun, week: str) -> object:
    return run.evaluators.scoring_fingerprint


def _score(run: StageRun, week: str, stored: list[SessionScores]) -> Iterable[SessionScores]:
    by = run.evaluators

    def evaluate(
        sessions: Iterable[Session], known: Sequence[SessionScores]
    ) -> Iterable[SessionScores]:
        return score_week(sessions, by.chunk_scorer, known, concurrency=by.concurrency)

    def is_own(row: SessionScores) -> bool:
        return row.scoring_fingerprint == by.scoring_fingerprint

    return evaluated_rows(run, week, stored, evaluate, is_own)


def _scores_shown(run: StageRun, week: str, rows: list[SessionScores]) -> Shown:
    fingerprint = run.evaluators.scoring_fingerprint
    current = [row for row in rows if row.scoring_fingerprint == fingerprint]
    scores = [row.overall_quality for row in current if row.overall_quality is not None]
    reviewed = sum(row.status == "ok" for row in current)
    chunked = sum(len(row.chunks) > 1 for row in current)
    suspected = sum(row.injection_suspected for row in current)
    verdicts = Counter(row.verdict.verdict for row in current if row.verdict is not None)
    stopped = Counter(
        row.verdict.objection for row in current if row.verdict and row.verdict.objection
    )
    return Shown(
        f"{reviewed} reviewed, {chunked} in several chunks"
        + f", {stopped.total()} stopped by a signal" * bool(stopped)
        + f", {suspected} to look at" * bool(suspected),
        {
            "verdicts": ShownTable(
                ("verdict", "sessions"), [(name, verdicts[name]) for name in VERDICT_NAMES]
            ),
            "stopped_by_a_signal": ShownTable(("signal", "sessions"), stopped.most_common()),
            "scores": measured("dimension", _values(current)),
            **({"mean_overall_quality": round(sum(scores) / len(scores), 4)} if scores else {}),
            "in_several_chunks": chunked,
            "failed": sum(row.status == "failed" for row in current),
            "injection_suspected": suspected,
            "scored_by": run.evaluators.name,
        },
    )


def _values(rows: Iterable[SessionScores]) -> Iterator[tuple[str, float | None]]:
    """Yield the overall quality of each session, and its dimensions."""
    for row in rows:
        yield OVERALL, row.overall_quality
        yield from ((verdict.dimension, verdict.value) for verdict in row.dimension_scores)


SESSION_SCORES = Stage(
    table="session_scores",
    doc="""An LLM review of each session: its verdict as far as signals let it stand, six dimensions
and `overall_quality`, each with a rationale and its evidence by turn. None without a model.

A session too long for one call is cut into chunks by tokens, none over budget, and put together
again. Beside them the two computed efficiencies: lasting lines per 1,000 tokens and per human
turn.""",
    group="scoring",
    row_type=SessionScores,
    version=lambda: (prompt_texts(*SCORER), verdict_version()),
    reads=(RAW_SESSIONS,),
    made_from=_reviewer,
    make=_score,
    is_final=none_open,
    why_off=why_no_model,
    calls_models=True,
    is_scoped=True,
    shown=_scores_shown,
    pool=MODEL_POOL,
)

LANGFUSE_SCORES = Stage(
    table="langfuse_scores",
    doc="""Receipts: which scores, and labels given here, were written to the Langfuse sessions they
belong to, and read back; once a day the server is asked whether it still has them.

One score for each session and name, updated in place: the verdict that counts, with its basis, and
the scores of its LLM review. A session on which nobody spoke has none. Without a configured server
it says so and writes nothing.""",
    group="scoring",
    row_type=ScoreReceipt,
    reads=(SESSION_SIGNALS, SESSION_SCORES, LABELS),
    pool="langfuse",
)

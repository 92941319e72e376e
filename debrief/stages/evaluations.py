"""Judging and scoring: what judges say of each change, and six dimensions of each session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from debrief.evaluation import version_of
from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.keys import digest_of
from debrief.scoring.model import SessionScores
from debrief.scoring.scorer import score_week, verdict_version
from debrief.sessions.model import Session, SessionHead
from debrief.stages.run import StageRun
from debrief.stages.table import TableStage, upstream

EvaluationRow = TypeVar("EvaluationRow", bound=Struct)


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


def _judging_inputs(run: StageRun, week: str) -> str:
    by = run.evaluators
    above = upstream(run.lake, "raw_sessions", week=week)
    return digest_of(above, by.eval_digest, version_of(by.session_judge))


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


JUDGE_EVALUATIONS = TableStage(
    table="judge_evaluations",
    row_type=JudgeEvaluation,
    inputs=_judging_inputs,
    make=_judge,
    is_final=none_open,
    why_off=why_no_model,
    calls_models=True,
    is_scoped=True,
)


def _scoring_inputs(run: StageRun, week: str) -> str:
    above = upstream(run.lake, "raw_sessions", week=week)
    return digest_of(above, run.evaluators.scoring_fingerprint, verdict_version())


def _score(run: StageRun, week: str, stored: list[SessionScores]) -> Iterable[SessionScores]:
    by = run.evaluators

    def evaluate(
        sessions: Iterable[Session], known: Sequence[SessionScores]
    ) -> Iterable[SessionScores]:
        return score_week(sessions, by.chunk_scorer, known, concurrency=by.concurrency)

    def is_own(row: SessionScores) -> bool:
        return row.scoring_fingerprint == by.scoring_fingerprint

    return evaluated_rows(run, week, stored, evaluate, is_own)


SESSION_SCORES = TableStage(
    table="session_scores",
    row_type=SessionScores,
    inputs=_scoring_inputs,
    make=_score,
    is_final=none_open,
    why_off=why_no_model,
    calls_models=True,
    is_scoped=True,
)

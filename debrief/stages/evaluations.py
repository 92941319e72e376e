"""Judging and scoring: what judges say of each change, and six dimensions of each session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from debrief.evaluation import OFFLINE, version_of
from debrief.evaluators import Evaluators
from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import JUDGE_SETS, Judge, JudgeEvaluation
from debrief.keys import digest_of
from debrief.outcomes.store import success_labels
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
    by: Sequence[Evaluators],
    evaluate: Callable[
        [Evaluators, Iterable[Session], Sequence[EvaluationRow]], Iterable[EvaluationRow]
    ],
    is_own: Callable[[Evaluators, Any], bool],
) -> list[EvaluationRow]:
    """Return the rows that judge or score each session of a week that is in the run's scope.

    Rows of sessions outside of it stay, and so do those by others than this run's evaluators while
    their session is what it was.

    Args:
        run: the run.
        week: the week.
        stored: its rows, with ``session_id``, ``session_digest`` and ``status``.
        by: the evaluators.
        evaluate: makes the rows of sessions by evaluators, taking over what it can of stored ones.
        is_own: says whether a stored row is by evaluators.
    """

    def own(row: Any) -> bool:
        return any(is_own(evaluators, row) for evaluators in by)

    lake, scope = run.lake, run.scope
    heads = {head.id: head for head in lake.read("raw_sessions", week, SessionHead)}
    known = [] if scope.force else stored
    rows: list[Any] = [
        row for evaluators in by for row in evaluate(evaluators, scope.sessions(lake, week), known)
    ]
    before: Sequence[Any] = stored
    if scope.where:
        outside = heads.keys() - scope.ids(lake, week)
        rows += [row for row in before if own(row) and row.session_id in outside]
        order = {name: number for number, name in enumerate(heads)}
        rows.sort(key=lambda row: order[row.session_id])
    current = {(head.id, head.digest) for head in heads.values()}
    return rows + [
        row
        for row in before
        if not own(row)
        and row.status != "failed"
        and (row.session_id, row.session_digest) in current
    ]


def none_open(run: StageRun, week: str, rows: Sequence[Any]) -> bool:
    """Return whether the next run has nothing to ask again for a row."""
    return not any(row.status == "failed" or getattr(row, "second_failure", "") for row in rows)


def _judging_inputs(run: StageRun, week: str) -> str:
    by = run.evaluators.each
    made_by = [
        part
        for evaluators in by
        for part in (evaluators.eval_digest, version_of(evaluators.session_judge))
    ]
    return digest_of(upstream(run.lake, "raw_sessions", week=week), *made_by, ())


def _judge(run: StageRun, week: str, stored: list[JudgeEvaluation]) -> Iterable[JudgeEvaluation]:
    def evaluate(
        by: Evaluators, sessions: Iterable[Session], known: Sequence[JudgeEvaluation]
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

    return evaluated_rows(run, week, stored, run.evaluators.each, evaluate, _is_own_judgement)


def _is_own_judgement(by: Evaluators, row: JudgeEvaluation) -> bool:
    return row.eval_fingerprint == by.eval_fingerprint


JUDGE_EVALUATIONS = TableStage(
    table="judge_evaluations",
    row_type=JudgeEvaluation,
    inputs=_judging_inputs,
    make=_judge,
    is_final=none_open,
    calls_models=True,
    is_scoped=True,
)


class _SessionId(Struct, frozen=True):
    """The column of sessions that outcomes are found by."""

    id: str


def _outcomes(run: StageRun) -> dict[str, tuple[bool, str]]:
    """Return what is known of sessions from outside: labels, and what became of the work."""
    return run.once(
        "outcomes",
        lambda: {
            id_: (known.success, known.source) for id_, known in success_labels(run.lake).items()
        },
    )


def _scoring_inputs(run: StageRun, week: str) -> str:
    known = _outcomes(run)
    ids = run.lake.read("raw_sessions", week, _SessionId) if known else ()
    outcomes = sorted((head.id, *known[head.id]) for head in ids if head.id in known)
    scorers = [by.scoring_fingerprint for by in run.evaluators.each]
    above = upstream(run.lake, "raw_sessions", week=week)
    return digest_of(above, *scorers, verdict_version(), outcomes)


def _score(run: StageRun, week: str, stored: list[SessionScores]) -> Iterable[SessionScores]:
    def evaluate(
        by: Evaluators, sessions: Iterable[Session], known: Sequence[SessionScores]
    ) -> Iterable[SessionScores]:
        return score_week(
            sessions, by.chunk_scorer, known, concurrency=by.concurrency, outcomes=_outcomes(run)
        )

    return evaluated_rows(run, week, stored, run.evaluators.each, evaluate, _is_own_score)


def _is_own_score(by: Evaluators, row: SessionScores) -> bool:
    return (
        row.scoring_fingerprint == by.scoring_fingerprint
        # The offline evaluator's rows of another version are out of date, and cost nothing to make.
        or row.model == by.name == OFFLINE
        # What a model said alone is beside the second opinion, or is the same.
        or (row.model == by.name and by.has_second_opinion)
    )


SESSION_SCORES = TableStage(
    table="session_scores",
    row_type=SessionScores,
    inputs=_scoring_inputs,
    make=_score,
    is_final=none_open,
    calls_models=True,
    is_scoped=True,
)

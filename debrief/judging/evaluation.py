"""Judging sessions: one row a session and judge.

A row of an earlier run is reused when session, judge, evaluation fingerprint and the version of
the offline measures are what they were and it was a success; failures are tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from queue import SimpleQueue

from msgspec import structs

from debrief.errors import ModelError
from debrief.evaluation import EvaluationCounts, evaluate, failure_of, version_of
from debrief.judging.context import context_from_session
from debrief.judging.model import ChangeContext, ChangeJudge, Judge, JudgeEvaluation
from debrief.sessions.model import Session

ContextOf = Callable[[Session], ChangeContext]
_Item = tuple[Session, Judge, Callable[[], ChangeContext]]


class JudgeFailedError(ModelError):
    """A judge gave no judgement."""


def evaluate_week(
    sessions: Iterable[Session],
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    previous: Iterable[JudgeEvaluation] = (),
    *,
    counts: EvaluationCounts | None = None,
    concurrency: int = 1,
    context_of: ContextOf = context_from_session,
) -> Iterator[JudgeEvaluation]:
    """Yield the rows of many sessions: in the sessions' order, each in judge-name order.

    A failed judge gives a row with status ``failed`` and its reason.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        judges: at least one.
        judge_by: must be safe to call from several threads when ``concurrency`` is over 1.
        eval_fingerprint: of these judges; rows of another one are not reused.
        previous: rows of an earlier run of the same weeks.
        counts: updated as rows are yielded.
        concurrency: calls under way at once; 1 judges in this thread (right for the offline
            evaluator, which waits for nobody).
        context_of: what a judge is shown of a session.
    """
    version = version_of(judge_by)
    ordered = sorted(judges, key=lambda judge: judge.name)
    stored = {_identity(row): row for row in previous if row.status == "ok"}

    def stored_row(item: _Item) -> JudgeEvaluation | None:
        session, judge, _ = item
        return stored.get((session.id, session.digest, judge.name, eval_fingerprint, version))

    def groups() -> Iterator[list[_Item]]:
        for session in sessions:
            context = cache(partial(context_of, session))
            yield [(session, judge, context) for judge in ordered]

    def ask(item: _Item) -> JudgeEvaluation:
        return _judge(*item, judge_by, eval_fingerprint)

    return evaluate(groups(), stored_row, ask, workers=concurrency, counts=counts)


def judge_change(
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    context: ChangeContext,
    session: Session,
    eval_fingerprint: str,
) -> list[JudgeEvaluation]:
    """Return the judgements of all judges on one change, in judge-name order.

    All are asked at once. The others are not waited for once one has failed: their threads end
    with the process.

    Raises:
        JudgeFailedError: one of them failed; which, and why.
    """
    done: SimpleQueue[JudgeEvaluation] = SimpleQueue()

    def ask(judge: Judge) -> None:
        done.put(_judge(session, judge, lambda: context, judge_by, eval_fingerprint))

    for judge in judges:
        threading.Thread(target=ask, args=(judge,), daemon=True, name=judge.name).start()
    rows = []
    for _ in judges:
        row = done.get()
        if row.status == "failed":
            raise JudgeFailedError(f"judge {row.judge}", row.failure.rstrip("."))
        rows.append(row)
    return sorted(rows, key=lambda row: row.judge)


def weighted_average(rows: Iterable[JudgeEvaluation]) -> float | None:
    """Return the mean of the scores weighted by the judges' weights; None without a score.

    Failed rows have no score and do not count: look at their number before using the mean.
    """
    scored = [(row.weight, row.score) for row in rows if row.score is not None]
    whole = sum(weight for weight, _ in scored)
    return sum(weight * score for weight, score in scored) / whole if whole else None


def _identity(row: JudgeEvaluation) -> tuple[str, ...]:
    return row.session_id, row.session_digest, row.judge, row.eval_fingerprint, row.version


def _judge(
    session: Session,
    judge: Judge,
    context: Callable[[], ChangeContext],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
) -> JudgeEvaluation:
    row = JudgeEvaluation(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        judge=judge.name,
        weight=judge.weight,
        model=judge.model,
        status="failed",
        eval_fingerprint=eval_fingerprint,
    )
    try:
        answer = judge_by.judge(judge, context(), session)
        if not 0.0 <= answer.score <= 1.0:
            raise ValueError(f"the score {answer.score!r} is not between 0 and 1")
    except Exception as error:
        return structs.replace(row, failure=failure_of(error))
    version = version_of(judge_by)
    return structs.replace(row, status="ok", version=version, **structs.asdict(answer))

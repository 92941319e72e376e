"""Judge the sessions of a week: one row for each session and judge.

A row of an earlier run is reused when session, judge, evaluation fingerprint and the way of asking
are what they were and it was a success; failures are tried again. A judge is not asked about a
session that has nothing for it, nor about one whose plan is not known: that has no score.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from queue import SimpleQueue
from typing import Any

from msgspec import structs

from debrief.errors import ModelError
from debrief.evaluation import evaluate, failure_of, version_of
from debrief.judging.context import context_from_session, nothing_to_judge
from debrief.judging.model import ChangeContext, ChangeJudge, Judge, JudgeEvaluation
from debrief.models.fencing import injection_signs, is_suspected
from debrief.sessions.model import Session
from debrief.signals.request import not_known, request_of

ContextOf = Callable[[Session], ChangeContext]
_Item = tuple[Session, Judge, Callable[[], ChangeContext]]


def evaluate_week(
    sessions: Iterable[Session],
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    previous: Iterable[JudgeEvaluation] = (),
    *,
    concurrency: int = 1,
    context_of: ContextOf = context_from_session,
) -> Iterator[JudgeEvaluation]:
    """Yield the rows of many sessions: in the sessions' order, each in judge-name order.

    A failed judge gives a row with status ``failed`` and its reason; a session that has nothing for
    a judge a row ``no_change``, and it is not asked.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        judges: at least one.
        judge_by: must be safe to call from several threads when ``concurrency`` is over 1.
        eval_fingerprint: of these judges; rows of another one are not reused.
        previous: rows of an earlier run of the same weeks.
        concurrency: calls under way at once; 1 judges in this thread.
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
        session, judge, context = item
        return _judge(session, judge, context, judge_by, eval_fingerprint, only_changes=True)

    return evaluate(groups(), stored_row, ask, workers=concurrency)


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
        ModelError: one of them failed; which, and why.
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
            raise ModelError(f"judge {row.judge}", row.failure.rstrip("."))
        rows.append(row)
    return sorted(rows, key=lambda row: row.judge)


def weighted_average(rows: Iterable[Any]) -> float | None:
    """Return the mean of the scores weighted by the judges' weights; None without a score.

    Rows without a score do not count, neither as 0 nor as the middle: those that failed (look at
    their number before using the mean), those of sessions without a change, and those whose judge
    says that it cannot be seen.

    Args:
        rows: each with a ``weight`` and a ``score``.
    """
    scored = [(row.weight, row.score) for row in rows if row.score is not None]
    whole = sum(weight for weight, _ in scored)
    return sum(weight * score for weight, score in scored) / whole if whole else None


_identity = attrgetter("session_id", "session_digest", "judge", "eval_fingerprint", "version")


def _judge(
    session: Session,
    judge: Judge,
    context: Callable[[], ChangeContext],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    *,
    only_changes: bool = False,
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
        if only_changes and (nothing := nothing_to_judge(judge, session)):
            return structs.replace(
                row,
                status="no_change",
                version=version_of(judge_by),
                feedback=nothing,
                cost_usd=0.0,
            )
        asked = request_of(session)
        if asked is not None and asked.unknown:
            return structs.replace(
                row,
                status="ok",
                version=version_of(judge_by),
                feedback=not_known(asked),
                cost_usd=0.0,
            )
        shown = context()
        answer = judge_by.judge(judge, shown, session)
        if answer.score is not None and not 0.0 <= answer.score <= 1.0:
            raise ValueError(f"the score {answer.score!r} is not between 0 and 1")
        texts = shown.plan_content, shown.git_changes
        suspected = is_suspected(session) or bool(injection_signs(texts))
    except Exception as error:
        return structs.replace(row, failure=failure_of(error))
    said = {**structs.asdict(answer), "injection_suspected": suspected}
    return structs.replace(row, status="ok", version=version_of(judge_by), **said)

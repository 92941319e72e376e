"""Judging sessions: one row a session and judge, and nothing judged twice.

A row is taken over from an earlier run when session, judge, evaluation fingerprint and the version
of the offline measures are what they were and it was a success; failures are tried again. One
failure never costs the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import BoundedSemaphore

from msgspec import Struct

from debrief.errors import DebriefError
from debrief.judging.context import context_from_session
from debrief.judging.model import ChangeContext, ChangeJudge, Judge, JudgeEvaluation
from debrief.sessions.model import Session

ContextOf = Callable[[Session], ChangeContext]

_HELD_BACK = 10_000
"""Rows that may wait for one before them; a few megabytes of feedback."""


class Tally(Struct):
    """How many rows of a run were taken over, newly judged, or failed; counted as it goes."""

    reused: int = 0
    judged: int = 0
    failed: int = 0

    def count(self, row: JudgeEvaluation, reused: bool) -> None:
        """Count one row."""
        if reused:
            self.reused += 1
        elif row.status == "ok":
            self.judged += 1
        else:
            self.failed += 1


def evaluate_session(
    session: Session,
    judges: Iterable[Judge],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    *,
    context_of: ContextOf = context_from_session,
) -> list[JudgeEvaluation]:
    """Return what each judge says of a session, in judge-name order.

    A failed judge gives a row with status ``failed`` and its reason.
    """
    ordered = sorted(judges, key=lambda judge: judge.name)
    try:
        context = context_of(session)
    except Exception as error:
        return [_failed(session, judge, eval_fingerprint, error) for judge in ordered]
    return [_judge(session, judge, judge_by, context, eval_fingerprint) for judge in ordered]


def evaluate_week(
    sessions: Iterable[Session],
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    eval_fingerprint: str,
    previous: Iterable[JudgeEvaluation] = (),
    *,
    tally: Tally | None = None,
    concurrency: int = 1,
    context_of: ContextOf = context_from_session,
) -> Iterator[JudgeEvaluation]:
    """Yield the rows of many sessions: in the sessions' order, each in judge-name order.

    Args:
        sessions: read one by one, at most twice ``concurrency`` of them held at once.
        judges: at least one.
        judge_by: must be safe to call from several threads when ``concurrency`` is over 1.
        eval_fingerprint: of these judges; rows of another one are not taken over.
        previous: rows of an earlier run of the same weeks.
        tally: counts rows as they are yielded.
        concurrency: calls under way at once; 1 judges in this thread (right for the offline
            evaluator, which waits for nobody).
        context_of: what a judge is shown of a session.
    """
    ordered = sorted(judges, key=lambda judge: judge.name)
    kept = {_identity(row): row for row in previous if row.status == "ok"}
    tally = Tally() if tally is None else tally
    plan = _Plan(ordered, judge_by, eval_fingerprint, version_of(judge_by), kept, context_of)
    if concurrency <= 1:
        for session in sessions:
            for row, reused in plan.rows(session):
                tally.count(row, reused)
                yield row
        return
    for row, reused in _concurrently(sessions, plan, concurrency):
        tally.count(row, reused)
        yield row


def weighted_average(rows: Iterable[JudgeEvaluation]) -> float | None:
    """Return the mean of the scores weighted by the judges' weights; None without a score.

    Failed rows have no score and do not count: look at their number before using the mean.
    """
    scored = [(row.weight, row.score) for row in rows if row.score is not None]
    whole = sum(weight for weight, _ in scored)
    return sum(weight * score for weight, score in scored) / whole if whole else None


class _Plan(Struct, frozen=True):
    """All that is the same for every session of a run."""

    judges: list[Judge]
    judge_by: ChangeJudge
    eval_fingerprint: str
    version: str
    kept: dict[tuple[str, ...], JudgeEvaluation]
    context_of: ContextOf

    def reusable(self, session: Session, judge: Judge) -> JudgeEvaluation | None:
        identity = session.id, session.digest, judge.name, self.eval_fingerprint, self.version
        return self.kept.get(identity)

    def due(self, session: Session) -> list[Judge]:
        return [judge for judge in self.judges if self.reusable(session, judge) is None]

    def rows(self, session: Session) -> Iterator[tuple[JudgeEvaluation, bool]]:
        fresh = iter(
            evaluate_session(
                session,
                due,
                self.judge_by,
                self.eval_fingerprint,
                context_of=self.context_of,
            )
            if (due := self.due(session))
            else ()
        )
        for judge in self.judges:
            row = self.reusable(session, judge)
            yield (row, True) if row is not None else (next(fresh), False)


def _concurrently(
    sessions: Iterable[Session], plan: _Plan, concurrency: int
) -> Iterator[tuple[JudgeEvaluation, bool]]:
    """Keep ``concurrency`` calls under way; rows come out in order, finished ones wait.

    Only calls that are still to be made hold a session and its context, so their number is what
    is bounded tightly. A single slow call may hold back many finished rows, which are small.
    """
    waiting: deque[Future[JudgeEvaluation] | JudgeEvaluation] = deque()
    unfinished = BoundedSemaphore(2 * concurrency)
    with ThreadPoolExecutor(concurrency, thread_name_prefix="judge") as pool:
        try:
            for session in sessions:
                for item in _submitted(session, plan, pool, unfinished):
                    waiting.append(item)
                    while waiting and (_is_there(waiting[0]) or len(waiting) > _HELD_BACK):
                        yield _settled(waiting.popleft())
            while waiting:
                yield _settled(waiting.popleft())
        finally:
            for item in waiting:
                if isinstance(item, Future):
                    item.cancel()


def _submitted(
    session: Session, plan: _Plan, pool: ThreadPoolExecutor, unfinished: BoundedSemaphore
) -> Iterator[Future[JudgeEvaluation] | JudgeEvaluation]:
    due = plan.due(session)
    context: ChangeContext | None = None
    failure: Exception | None = None
    if due:
        try:
            context = plan.context_of(session)
        except Exception as error:
            failure = error
    for judge in plan.judges:
        row = plan.reusable(session, judge)
        if row is not None:
            yield row
        elif context is None:
            yield pool.submit(
                _failed, session, judge, plan.eval_fingerprint, failure or RuntimeError()
            )
        else:
            unfinished.acquire()
            future = pool.submit(
                _judge, session, judge, plan.judge_by, context, plan.eval_fingerprint
            )
            future.add_done_callback(lambda _: unfinished.release())
            yield future


def _is_there(item: Future[JudgeEvaluation] | JudgeEvaluation) -> bool:
    return not isinstance(item, Future) or item.done()


def _settled(
    item: Future[JudgeEvaluation] | JudgeEvaluation,
) -> tuple[JudgeEvaluation, bool]:
    return (item.result(), False) if isinstance(item, Future) else (item, True)


def _identity(row: JudgeEvaluation) -> tuple[str, ...]:
    return row.session_id, row.session_digest, row.judge, row.eval_fingerprint, row.version


def version_of(judge_by: object) -> str:
    """Return the version of whoever judges by rules of its own; empty for a model."""
    return str(getattr(judge_by, "version", ""))


def _judge(
    session: Session,
    judge: Judge,
    judge_by: ChangeJudge,
    context: ChangeContext,
    eval_fingerprint: str,
) -> JudgeEvaluation:
    try:
        answer = judge_by.judge(judge, context, session)
    except Exception as error:
        return _failed(session, judge, eval_fingerprint, error)
    if not 0.0 <= answer.score <= 1.0:
        reason = ValueError(f"the score {answer.score!r} is not between 0 and 1")
        return _failed(session, judge, eval_fingerprint, reason)
    return JudgeEvaluation(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        judge=judge.name,
        weight=judge.weight,
        model=judge.model,
        status="ok",
        score=answer.score,
        feedback=answer.feedback,
        eval_fingerprint=eval_fingerprint,
        version=version_of(judge_by),
        input_tokens=answer.input_tokens,
        output_tokens=answer.output_tokens,
        cost_usd=answer.cost_usd,
        answered_by=answer.answered_by,
    )


def _failed(
    session: Session, judge: Judge, eval_fingerprint: str, error: Exception
) -> JudgeEvaluation:
    reason = str(error) if isinstance(error, DebriefError) else f"{type(error).__name__}: {error}"
    return JudgeEvaluation(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        judge=judge.name,
        weight=judge.weight,
        model=judge.model,
        status="failed",
        failure=reason,
        eval_fingerprint=eval_fingerprint,
    )

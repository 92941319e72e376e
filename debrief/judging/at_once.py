"""One change before all judges at once, and an end at the first that fails."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from queue import SimpleQueue

from debrief.errors import ModelError
from debrief.judging.evaluation import evaluate_session
from debrief.judging.model import ChangeContext, ChangeJudge, Judge, JudgeEvaluation
from debrief.sessions.model import Session


class JudgeFailedError(ModelError):
    """A judge gave no judgement."""


def judge_change(
    judges: Sequence[Judge],
    judge_by: ChangeJudge,
    context: ChangeContext,
    session: Session,
    eval_fingerprint: str,
) -> list[JudgeEvaluation]:
    """Return what all judges say of a change, in judge-name order.

    The others are not waited for once one has failed: their threads end with the process.

    Raises:
        JudgeFailedError: one of them failed; which, and why.
    """
    done: SimpleQueue[JudgeEvaluation] = SimpleQueue()

    def judge_one(judge: Judge) -> None:
        (row,) = evaluate_session(
            session, [judge], judge_by, eval_fingerprint, context_of=lambda _: context
        )
        done.put(row)

    for judge in judges:
        threading.Thread(target=judge_one, args=(judge,), daemon=True, name=judge.name).start()
    rows = []
    for _ in judges:
        row = done.get()
        if row.status == "failed":
            raise JudgeFailedError(f"judge {row.judge}", row.failure.rstrip("."))
        rows.append(row)
    return sorted(rows, key=lambda row: row.judge)

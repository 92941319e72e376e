"""A lake of many weeks, without transcripts."""

from __future__ import annotations

import datetime as dt

from debrief.judging.model import JudgeEvaluation
from debrief.keys import week_after
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.model import SessionHead
from tests.snapshots.scenario import head
from tests.training.scenario import judgement, scores


def fill_lake(lake: Lake, last: str, *, weeks: int, sessions: int, tasks: int = 4) -> None:
    """Write heads, judge evaluations and scores of so many sessions, evenly over the weeks."""
    for number in range(weeks):
        week = week_after(last, number + 1 - weeks)
        ids = range(number, sessions, weeks)
        heads = [_head(id, week, f"task-{id % tasks:03}") for id in ids]
        lake.write("raw_sessions", week, heads, SessionHead)
        lake.write("judge_evaluations", week, map(_evaluation, heads), JudgeEvaluation)
        lake.write("session_scores", week, map(_scores, heads), SessionScores)


def _head(number: int, week: str, task: str) -> SessionHead:
    started = dt.datetime.fromisoformat(f"{week}T09:00:00+00:00") + dt.timedelta(minutes=number)
    return head(
        f"{number:08x}-0000-4000-8000-000000000000",
        tool=("claude-code", "droid", "codex")[number % 3],
        task=task,
        started=started,
        ended=started,
        lines_added=number % 300,
        digest=f"{number:064x}",
    )


def _evaluation(of: SessionHead) -> JudgeEvaluation:

    return judgement(of, score=0.5, input_tokens=9_000, output_tokens=300, cost_usd=0.004)


def _scores(of: SessionHead) -> SessionScores:
    return scores(of, 0.6, input_tokens=20_000, output_tokens=900, cost_usd=0.01)

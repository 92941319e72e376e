"""A lake of many weeks, without transcripts."""

from __future__ import annotations

import datetime as dt

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.scoring.model import SessionScores
from debrief.sessions.model import SessionHead
from debrief.weeks import week_after


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
    name = f"{number:08x}-0000-4000-8000-000000000000"
    return SessionHead(
        id=name,
        source="claude-code",
        tool=("claude-code", "droid", "codex")[number % 3],
        models=("some-model",),
        task=task,
        repository=f"git@example.org:team/{task}.git",
        started=started,
        ended=started + dt.timedelta(minutes=20),
        lines_added=number % 300,
        digest=f"{number:064x}",
    )


def _evaluation(head: SessionHead) -> JudgeEvaluation:
    return JudgeEvaluation(
        session_id=head.id,
        session_digest=head.digest,
        started=head.started,
        judge="plan-compliance",
        weight=1.0,
        model="some-model",
        status="ok",
        score=0.5,
        feedback="Turn 3 shows a failing test that was left failing.",
        eval_fingerprint="0" * 8,
        input_tokens=9_000,
        output_tokens=300,
        cost_usd=0.004,
    )


def _scores(head: SessionHead) -> SessionScores:
    return SessionScores(
        session_id=head.id,
        session_digest=head.digest,
        started=head.started,
        ended=head.ended,
        task=head.task,
        tool=head.tool,
        model="some-model",
        scoring_fingerprint="0" * 8,
        status="ok",
        overall_quality=0.6,
        input_tokens=20_000,
        output_tokens=900,
        cost_usd=0.01,
    )

"""Rows of a lake, told by what matters about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from debrief.judging.model import JudgeEvaluation
from debrief.scoring.model import SessionScores
from debrief.sessions.model import SessionHead
from debrief.snapshots.model import SessionMetadataRow

AT = datetime(2026, 10, 6, 9, tzinfo=UTC)


def head(session: str, **more: Any) -> SessionHead:
    facts: dict[str, Any] = {
        "source": "claude-code",
        "tool": "claude-code",
        "task": "late-readings",
        "started": AT,
        "ended": AT,
        "digest": f"digest of {session}",
    }
    return SessionHead(id=session, **{**facts, **more})


def metadata(session: str, **more: Any) -> SessionMetadataRow:
    facts: dict[str, Any] = {"tool": "claude-code", "recorded_at": AT, "task": "late-readings"}
    return SessionMetadataRow(session_id=session, **{**facts, **more})


def judgement(session: str, **more: Any) -> JudgeEvaluation:
    facts: dict[str, Any] = {
        "session_digest": f"digest of {session}",
        "started": AT,
        "judge": "plan-compliance",
        "weight": 1.0,
        "model": "offline",
        "status": "ok",
        "score": 0.5,
        "eval_fingerprint": "11111111",
    }
    return JudgeEvaluation(session_id=session, **{**facts, **more})


def scores(session: str, **more: Any) -> SessionScores:
    facts: dict[str, Any] = {
        "session_digest": f"digest of {session}",
        "started": AT,
        "ended": AT,
        "task": "late-readings",
        "tool": "claude-code",
        "model": "offline",
        "scoring_fingerprint": "22222222",
        "status": "ok",
        "overall_quality": 0.5,
    }
    return SessionScores(session_id=session, **{**facts, **more})

"""What a session's person typed."""

from __future__ import annotations

from debrief.sessions.model import Session


def prompts(session: Session) -> list[str]:
    return [turn.prompt for turn in session.turns if turn.number]

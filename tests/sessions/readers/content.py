"""What a session holds, turn after turn."""

from __future__ import annotations

from debrief.sessions.model import Session, ToolCall


def prompts_of(session: Session) -> list[str]:
    return [turn.prompt for turn in session.turns if turn.number]


def texts_of(session: Session) -> list[str]:
    return [message.text for turn in session.turns for message in turn.messages]


def calls_of(session: Session) -> list[ToolCall]:
    return [call for turn in session.turns for each in turn.messages for call in each.calls]

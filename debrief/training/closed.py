"""Take from a session that broke off its turns up to the last one that was finished.

Where a session breaks off or is stopped, the last turn is open, whatever it holds; the model's work
before that ended as it should, and its turns are a conversation of their own.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from debrief.scoring.verdict import Basis, SessionVerdict
from debrief.sessions.model import Session, Turn
from debrief.training.given import is_answer, is_stopped

_BROKE_OFF: Final[frozenset[Basis]] = frozenset(["open_end", "stopped"])


def broke_off(verdict: SessionVerdict | None) -> bool:
    """Return whether a verdict rests on how the session ended, and on nothing that came of it."""
    return verdict is not None and verdict.basis in _BROKE_OFF


def until_closed(session: Session) -> Session | None:
    """Return a session that broke off without the turns behind its last closed one; None where
    there is no such turn."""
    kept = [turn for turn in session.turns if not turn.rewound][:-1]
    while kept and not is_closed(kept[-1]):
        kept.pop()
    return replace(session, turns=tuple(kept)) if kept else None


def is_closed(turn: Turn) -> bool:
    """Return whether the model ended a turn with words, and nobody stopped it."""
    answers = [message for message in turn.messages if is_answer(message)]
    return bool(answers) and not answers[-1].calls and not is_stopped(turn, answers)

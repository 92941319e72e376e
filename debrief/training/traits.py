"""What of a session decides whether and where it goes into a training set, without its turns.

Read off each session once and kept by its digest, so that choosing, splitting and removing
near-duplicates never decode a conversation again.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from debrief.offline.checks import check_of
from debrief.offline.commands import shell_command, simple_commands
from debrief.sessions.model import Session
from debrief.training.conversations import conversation_of, is_answered, is_trained_on
from debrief.training.languages import languages_of
from debrief.training.similarity import message_marks, signature_of

TRAITS = "5"
"""Raised when the same session gives other traits: all are read off again."""


class LanguageLines(Struct, frozen=True, gc=False):
    """Lines added and removed in one language."""

    language: str
    lines: int


class SessionTraits(Struct, frozen=True, kw_only=True):
    """One row: a session by what it is chosen by."""

    session_id: str
    session_digest: str
    started: datetime
    tool: str
    model: str
    """The one that answered most; empty when none is named."""
    repository: str
    answered: bool
    """The model said or did something that was not taken back."""
    growth: int
    """Lines added plus lines removed."""
    asked: bool = True
    """Of something that the model did, it is known what the person had asked for."""
    validated: bool
    """A test, lint or type run or a build ran, whatever it said."""
    unsure_redactions: int
    languages: tuple[LanguageLines, ...] = ()
    signature: bytes = b""
    """MinHash of its words."""
    message_marks: bytes = b""
    """Hashes of its messages."""
    version: str = ""
    """Of the way they were read off."""


def traits_of(session: Session) -> SessionTraits:
    """Read the traits of a session."""
    messages = conversation_of(session).close()
    answered = is_answered(messages)
    return SessionTraits(
        session_id=session.id,
        session_digest=session.digest,
        started=session.started,
        tool=session.tool,
        model=session.models[0] if session.models else "",
        repository=session.repository,
        answered=answered,
        asked=is_trained_on(messages),
        growth=session.growth,
        validated=was_validated(session),
        unsure_redactions=session.unsure_redactions,
        languages=tuple(
            LanguageLines(language, lines) for language, lines in languages_of(session).items()
        ),
        signature=signature_of(session) if answered else b"",
        message_marks=message_marks(session) if answered else b"",
    )


def was_answered(session: Session) -> bool:
    """Return whether the model said or called anything in a turn that was not taken back."""
    return is_answered(conversation_of(session).close())


def was_validated(session: Session) -> bool:
    """Return whether a test, lint or type run or a build ran in the session, whatever it said."""
    for turn in session.turns:
        for message in turn.messages:
            for call in message.calls:
                command = shell_command(call) if call.status in ("ok", "failed") else None
                if command and any(map(check_of, simple_commands(command))):
                    return True
    return False

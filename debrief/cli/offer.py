"""After a run without a model: a hint that an installed coding agent could score the sessions."""

from __future__ import annotations

from debrief.markdown import counted
from debrief.models.programs import installed

TOKENS_A_SESSION = 12_000
"""Of the one question that scores and judges a session: 11,700 on average of 48 sessions of people,
10,400 of 354 of any kind."""


def offer_of(sessions: int) -> str:
    """Return one line that names the command and what it would take; empty without a program."""
    found = installed()
    if not found or not sessions:
        return ""
    tokens = sessions * TOKENS_A_SESSION
    shown = f"{tokens / 1e6:,.1f} million" if tokens >= 1e6 else f"{tokens:,}"
    return (
        f"{found[0].title} is on this machine and answers without a key: "
        f"debrief run --model {found[0].name} ({counted(sessions, 'session')}, about "
        f"{shown} tokens of its plan)."
    )

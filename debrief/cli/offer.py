"""What a run without a model says where a program could answer for one."""

from __future__ import annotations

from debrief.markdown import counted
from debrief.models.programs import installed

TOKENS_A_SESSION = 27_000
"""Of all questions about one session: measured on 36 sessions of people."""


def offer_of(sessions: int) -> str:
    """Return one line that names the command and what it would take; empty without a program."""
    found = installed()
    if not found or not sessions:
        return ""
    million = sessions * TOKENS_A_SESSION / 1_000_000
    return (
        f"{found[0].title} is on this machine and answers without a key: "
        f"debrief run --model {found[0].name} ({counted(sessions, 'session')}, about "
        f"{million:,.1f} million tokens of its plan)."
    )

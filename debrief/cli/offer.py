"""What a model would add to the rules, and what that takes: said where no model was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from debrief.cli.asking import AskingEstimate, amount_text, shown_tokens
from debrief.markdown import counted
from debrief.models.programs import installed

if TYPE_CHECKING:
    from debrief.settings import Settings

TOKENS_A_SESSION = 12_000
"""Of the one question that scores and judges a session: 11,700 on average of 48 sessions of people,
10,400 of 354 of any kind."""
HOW_TO_ASK = (
    "A model reads what rules cannot. Put its provider's key into ~/.debrief/.env (chmod 600); "
    "then debrief run --model NAME says what it costs before it asks."
)
"""For who has neither a program nor a key."""


def offer_of(sessions: int) -> str:
    """Return one line that names the command and roughly what it would take; empty without a
    program.

    Nothing is counted for it but the sessions: ``counted_offer`` says it exactly.
    """
    found = installed()
    if not found or not sessions:
        return ""
    return (
        f"{found[0].title} is on this machine and answers without a key: "
        f"debrief run --model {found[0].name} ({counted(sessions, 'session')}, about "
        f"{shown_tokens(sessions * TOKENS_A_SESSION)} tokens of its plan)."
    )


def counted_offer(estimate: AskingEstimate, settings: Settings, command: str) -> str:
    """Return one line that says what a command would have a model read, and for how much.

    Args:
        estimate: what was counted; its model is the one to be asked.
        settings: whose limit holds.
        command: that asks it.

    Returns:
        the line; empty where the model has nothing to read.
    """
    if not estimate.calls:
        return ""
    sessions = f"{counted(estimate.sessions, 'session')}, " * bool(estimate.sessions)
    amount = amount_text(estimate, settings)
    return f"To have {estimate.model} read them too: {command} ({sessions}{amount})."

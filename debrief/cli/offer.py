"""The offer to have the newest sessions reviewed, in words: said where no model was asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from debrief.cli.asking import shown_tokens, shown_usd
from debrief.markdown import counted
from debrief.models.programs import program_of

if TYPE_CHECKING:
    from debrief.review_offer import ReviewOffer

HOW_TO_ASK = (
    "To have sessions reviewed, log in to Claude Code, Codex or Gemini CLI, or put a provider's "
    "key into ~/.debrief/.env (chmod 600); then debrief run --model NAME says what it costs "
    "before it asks."
)
"""For who has neither a login nor a key."""


def offer_text(offer: ReviewOffer) -> str:
    """Return the question whether a model is to review the newest sessions, with what it takes."""
    count = len(offer.sessions)
    sessions = f"newest {counted(count, 'session')}" if count > 1 else "newest session"
    if program_of(offer.model) is not None:
        return (
            f"{offer.title} is logged in here. Have it review your {sessions}? "
            f"About {shown_tokens(round(offer.tokens, -3))} tokens of your plan."
        )
    cost = "" if offer.cost_usd is None else f", about {shown_usd(offer.cost_usd)}"
    return (
        f"Have {offer.model} review your {sessions}? "
        f"About {shown_tokens(round(offer.tokens, -3))} tokens{cost}."
    )

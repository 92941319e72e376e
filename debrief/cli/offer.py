"""The offer to have the newest sessions reviewed, in words: said where no model was asked."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from debrief.cli.asking import AskingEstimate, estimate_of, shown_tokens, shown_usd
from debrief.cli.shared import console
from debrief.markdown import counted
from debrief.models.programs import program_of

if TYPE_CHECKING:
    from debrief.lake import Lake
    from debrief.review_offer import ReviewOffer
    from debrief.settings import Settings

REVIEWED = ("judge_evaluations", "session_scores")
"""The stages that ask; what follows from them is made without a model."""

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


def counted_offer(lake: Lake, settings: Settings, offer: ReviewOffer) -> ReviewOffer:
    """Return an offer with what it takes as counted, and not as it is on average."""
    chosen = settings.with_given(model=offer.model)
    with console(stderr=True).status("Counting what a review takes …"):
        estimate = estimated_review(lake, chosen, offer.sessions)
    return replace(offer, tokens=estimate.tokens, cost_usd=estimate.cost_usd)


def estimated_review(lake: Lake, settings: Settings, sessions: Collection[str]) -> AskingEstimate:
    """Return what a review of sessions takes.

    Raises:
        ConfigurationError: a judge is wrong.
    """
    from debrief.conditions import parse_where, where_of_sessions
    from debrief.evaluators import make_evaluators
    from debrief.scope import Scope
    from debrief.sessions.store import weeks_of_sessions
    from debrief.stages.rehearsal import added_up, rehearse
    from debrief.stages.run import StageRun

    by = make_evaluators(settings, no_model=False, dry_run=True)
    run = StageRun(
        lake,
        weeks_of_sessions(lake, sessions),
        scope=Scope(parse_where([str(where_of_sessions(sessions))])),
        evaluators=lambda: by,
    )
    return estimate_of(settings.model or by.name, added_up(rehearse(run, REVIEWED)), len(sessions))

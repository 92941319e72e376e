"""Stories whose sessions belong to a repository, each a day after the other."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from debrief.friction.failed_commands import failed_commands
from debrief.friction.grouping import recurring_failures
from debrief.friction.schema import FrictionEvent, RecurringFriction
from debrief.models.usage import Price, Rates
from debrief.sessions.model import Session, Turn
from tests.signals.scenario import START, Story

PRICE = Price(rates=Rates(0.001, 0.002, 0.0001, 0.0015))
"""Of ``model-a``, by which every story is told: a message of 100 tokens each way costs 0.3."""


def prices(model: str) -> Price | None:
    return PRICE if model == "model-a" else None


def day(number: int, story: Story, repository: str = "shop", apart: float = 60) -> Session:
    """Return a story as the session of a day; its messages are so many seconds apart."""
    session = story.session()

    def timed(turn: Turn) -> Turn:
        begun = START + timedelta(days=number, hours=turn.number)
        messages = tuple(
            replace(message, at=begun + timedelta(seconds=apart * number))
            for number, message in enumerate(turn.messages)
        )
        ended = begun + timedelta(seconds=apart * len(messages))
        deeds = tuple(replace(deed, at=ended) for deed in turn.interventions)
        return replace(turn, at=begun, ended=ended, messages=messages, interventions=deeds)

    return replace(
        session,
        id=f"day-{number}",
        repository=repository,
        started=START + timedelta(days=number),
        ended=START + timedelta(days=number, hours=9),
        turns=tuple(map(timed, session.turns)),
        digest=f"digest-{number}",
    )


def events(*stories: Story) -> list[FrictionEvent]:
    """Return what failed in the sessions of some days of one repository."""
    return [
        event
        for number, story in enumerate(stories)
        for event in failed_commands(day(number, story), prices)
    ]


def frictions(*stories: Story) -> list[RecurringFriction]:
    """Return what recurs in the sessions of some days of one repository."""
    return recurring_failures(events(*stories))


def lines(*stories: Story) -> list[str]:
    """Return the line of each friction of some days."""
    return [friction.line for friction in frictions(*stories)]

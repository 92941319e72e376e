"""Stories whose sessions belong to a repository, each a day after the other."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from debrief.models.usage import Price, Rates
from debrief.sessions.model import Session, Turn
from debrief.troubles.finding import events_of
from debrief.troubles.grouping import find_troubles
from debrief.troubles.model import Trouble, TroubleEvent
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


def events(*stories: Story, apart: float = 60) -> list[TroubleEvent]:
    """Return what went wrong in the sessions of some days of one repository, what they looked up at
    their beginning left out."""
    return [event for event in _events(*stories, apart=apart) if event.kind != "same_start"]


def _events(*stories: Story, apart: float = 60) -> list[TroubleEvent]:
    return [
        event
        for number, story in enumerate(stories)
        for event in events_of(day(number, story, apart=apart), prices)
    ]


def troubles(*stories: Story, apart: float = 60) -> list[Trouble]:
    """Return what recurs in the sessions of some days of one repository."""
    return find_troubles(_events(*stories, apart=apart), {"shop": len(stories)})


def told(*stories: Story) -> list[tuple[str, str]]:
    """Return kind and subject of what recurs."""
    return [(trouble.kind, trouble.subject) for trouble in troubles(*stories)]

"""How long answers are kept, and how many."""

from __future__ import annotations

from typing import TypedDict

from debrief.settings import Settings
from debrief.state.store import DAY, State

_CHORE = "prune"


class Limits(TypedDict):
    """What ``State.prune`` keeps."""

    days: float
    size: int


def limits(settings: Settings) -> Limits:
    """Return how long and how many answers are kept."""
    return Limits(days=settings.cache_days, size=int(settings.cache_mb * 1e6))


def prune_daily(state: State, settings: Settings) -> None:
    """Drop what is too old or too much, if nobody did today."""
    if state.due(_CHORE, DAY):
        state.prune(**limits(settings))

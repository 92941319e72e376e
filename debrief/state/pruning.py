"""How long answers are kept, and how many."""

from __future__ import annotations

from typing import TypedDict

from debrief.errors import ConfigurationError
from debrief.settings import Settings
from debrief.state.store import DAY, State

DAYS = 90.0
MEGABYTES = 2_000.0
_CHORE = "prune"


class Limits(TypedDict):
    """What ``State.prune`` keeps."""

    days: float
    size: int


def limits(settings: Settings, days: float | None = None, megabytes: float | None = None) -> Limits:
    """Return how long and how many answers are kept: as given, else as the settings say.

    Raises:
        ConfigurationError: one is no number from 0 up.
    """
    kept = _number(settings, "DEBRIEF_CACHE_DAYS", DAYS, days)
    most = _number(settings, "DEBRIEF_CACHE_MB", MEGABYTES, megabytes)
    return Limits(days=kept, size=int(most * 1e6))


def prune_daily(state: State, settings: Settings) -> None:
    """Drop what is too old or too much, if nobody did today."""
    if state.due(_CHORE, DAY):
        state.prune(**limits(settings))


def _number(settings: Settings, name: str, default: float, given: float | None) -> float:
    told: float | str = given if given is not None else settings.get(name) or default
    try:
        number = float(told)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise ConfigurationError(name, f"{told!r} is no number from 0 up", "Correct it.")
    return number

"""Whether runs are handed to workers, and over how many weeks one of them goes."""

import dagster as dg

from debrief.errors import ConfigurationError
from debrief.settings import Settings, load_settings

_LAUNCH, _QUEUE = "DEBRIEF_LAUNCH", "queue"
_WEEKS_A_RUN = 4
"""Of a run that is handed to a worker."""
_WEEKS_A_RUN_HERE = 26
"""A page of the UI about a run shows all that it made: half a year of nine stages opens in a second
or two, and a year takes twice as long."""


def in_queue(settings: Settings) -> bool:
    """Return whether runs are handed to workers, rather than carried out here.

    Raises:
        ConfigurationError: ``DEBRIEF_LAUNCH`` is neither ``queue`` nor ``here``.
    """
    told = settings.get(_LAUNCH, "here")
    if told not in (_QUEUE, "here"):
        raise ConfigurationError(_LAUNCH, f"{told!r} is not known", "Say queue or here.")
    return told == _QUEUE


def weeks_a_run(settings: Settings) -> int:
    """Return over how many weeks one run goes at most.

    Raises:
        ConfigurationError: ``DEBRIEF_WEEKS_A_RUN`` is no number from 1 up.
    """
    usual = _WEEKS_A_RUN if in_queue(settings) else _WEEKS_A_RUN_HERE
    told = settings.get("DEBRIEF_WEEKS_A_RUN") or str(usual)
    if not (told.isascii() and told.isdecimal() and int(told) > 0):
        raise ConfigurationError(
            "DEBRIEF_WEEKS_A_RUN", f"{told!r} is no number from 1 up", "Correct it."
        )
    return int(told)


def policy_of_weeks() -> dg.BackfillPolicy:
    """Return how a backfill from the UI is cut into runs.

    A run costs more than a week of a cheap stage, so on one machine one run takes half a year;
    where there are workers, each run takes as many weeks as are handed out at a time.
    """
    return dg.BackfillPolicy.multi_run(max_partitions_per_run=weeks_a_run(load_settings()))

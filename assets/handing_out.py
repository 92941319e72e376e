"""Whether runs are handed to workers, and how large they are then."""

import dagster as dg

from debrief.errors import ConfigurationError
from debrief.settings import Settings, load_settings

_LAUNCH, _QUEUE = "DEBRIEF_LAUNCH", "queue"
_WEEKS_A_RUN = 4


def in_queue(settings: Settings) -> bool:
    """Tell whether runs are handed to workers, rather than carried out here.

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
    told = settings.get("DEBRIEF_WEEKS_A_RUN") or str(_WEEKS_A_RUN)
    if not (told.isascii() and told.isdecimal() and int(told) > 0):
        raise ConfigurationError(
            "DEBRIEF_WEEKS_A_RUN", f"{told!r} is no number from 1 up", "Correct it."
        )
    return int(told)


def policy_of_weeks() -> dg.BackfillPolicy:
    """Return how a backfill from the UI is cut into runs.

    A run costs more than a week of a cheap stage, so on one machine one run takes them all; where
    there are workers, each run takes as many as are handed out at a time.
    """
    settings = load_settings()
    if not in_queue(settings):
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(max_partitions_per_run=weeks_a_run(settings))

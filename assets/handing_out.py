"""Whether runs are handed to workers, and over how many weeks one of them goes."""

import dagster as dg

from debrief.settings import Settings, load_settings

_WEEKS_A_RUN = 4
"""Of a run that is handed to a worker."""
_WEEKS_A_RUN_HERE = 26
"""A page of the UI about a run shows all that it made: half a year of nine stages opens in a second
or two, and a year takes twice as long."""


def in_queue(settings: Settings) -> bool:
    """Return whether runs are handed to workers, rather than carried out here."""
    return settings.launch == "queue"


def weeks_a_run(settings: Settings) -> int:
    """Return over how many weeks one run goes at most."""
    return settings.weeks_a_run or (_WEEKS_A_RUN if in_queue(settings) else _WEEKS_A_RUN_HERE)


def policy_of_weeks() -> dg.BackfillPolicy:
    """Return how a backfill from the UI is cut into runs.

    A run costs more than a week of a cheap stage, so on one machine one run takes half a year;
    where there are workers, each run takes as many weeks as are handed out at a time.
    """
    return dg.BackfillPolicy.multi_run(max_partitions_per_run=weeks_a_run(load_settings()))

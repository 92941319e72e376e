"""Runs that a queue hands to workers.

A run is the unit that is handed out, over a range of weeks: inside it steps run one after the
other in one process, as everywhere else. Celery's queue takes the place of Dagster's own, so that
a run waits in one place only.
"""

from __future__ import annotations

from debrief.errors import ConfigurationError
from debrief.settings import Settings

BROKER = "DEBRIEF_BROKER"
QUEUE = "dagster"
"""Of the runs; the one that Dagster's Celery app takes from by default."""


def broker_of(settings: Settings) -> str:
    """Return the broker's address.

    Raises:
        ConfigurationError: none is set.
    """
    if not settings.broker:
        raise ConfigurationError(
            BROKER, "is not set", "Name the broker that hands out runs: redis://host:6379/0."
        )
    return settings.broker

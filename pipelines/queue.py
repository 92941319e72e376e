"""Runs that a queue hands to workers: what tells so, and what Dagster is told.

A run is the unit that is handed out, over a range of weeks: inside it steps run one after the
other in one process, as everywhere else. Celery's queue takes the place of Dagster's own, so that
a run waits in one place only.
"""

from __future__ import annotations

from debrief.errors import ConfigurationError
from debrief.settings import Settings

BROKER = "DEBRIEF_BROKER"
STAGES, COORDINATORS = "dagster", "coordinators"
"""Queues: of the runs that do the work, and of those that launch them and wait. A worker takes
one or the other, or runs that wait would hold the places of those they wait for."""
QUEUE_TAG = "dagster-celery/queue"
TASK_TAG = "dagster-celery/task_id"
"""Of a run that was handed out: by it the broker is asked whether somebody works on it."""


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

"""Runs that a queue hands to workers: what tells so, and what Dagster is told.

A run is the unit that is handed out, over a range of weeks: inside it steps run one after the
other in one process, as everywhere else. Celery's queue takes the place of Dagster's own, so that
a run waits in one place only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from debrief.errors import ConfigurationError
from debrief.settings import Settings
from pipelines.team_home import CONFIGURATION, URL, is_ours, packaged_configuration, write

BROKER = "DEBRIEF_BROKER"
STAGES, COORDINATORS = "dagster", "coordinators"
"""Queues: of the runs that do the work, and of those that launch them and wait. A worker takes
one or the other, or runs that wait would hold the places of those they wait for."""
QUEUE_TAG = "dagster-celery/queue"
TASK_TAG = "dagster-celery/task_id"
"""Of a run that was handed out: by it the broker is asked whether somebody works on it."""
_LONGEST_WAIT = 7 * 86_400
"""Seconds that a run may wait for a worker: it counts as starting all the while."""


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


def queue_configuration() -> dict[str, Any]:
    """Return the ``dagster.yaml`` of every process that launches or carries out such runs."""
    import yaml

    configuration: dict[str, Any] = yaml.safe_load(
        packaged_configuration().read_text(encoding="utf-8")
    )
    configuration.pop("run_queue", None)
    configuration["concurrency"].pop("runs", None)
    configuration["concurrency"]["pools"] = {"granularity": "op", "default_limit": 64}
    configuration["run_monitoring"]["start_timeout_seconds"] = _LONGEST_WAIT
    return {
        **configuration,
        "storage": {"postgres": {"postgres_url": {"env": URL}}},
        # What a step prints stays on its worker's disk, where no page can show it and nobody would
        # ever remove it.
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        },
        "run_coordinator": {
            "module": "dagster._core.run_coordinator",
            "class": "DefaultRunCoordinator",
        },
        "run_launcher": {
            "module": "dagster_celery.launcher",
            "class": "CeleryRunLauncher",
            "config": {
                "broker": {"env": BROKER},
                "backend": {"env": BROKER},
                "default_queue": STAGES,
            },
        },
    }


def prepare_queue_home(home: Path) -> None:
    """Write the configuration into a ``DAGSTER_HOME`` that has none, or an earlier one of ours."""
    if not (home / CONFIGURATION).exists() or is_ours(home):
        write(home / CONFIGURATION, queue_configuration())

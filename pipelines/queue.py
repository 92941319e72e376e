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
from pipelines.team_home import CONFIGURATION, URL, packaged_configuration

BROKER = "DEBRIEF_BROKER"
STAGES, COORDINATORS = "dagster", "coordinators"
"""Queues: of the runs that do the work, and of those that launch them and wait. A worker takes
one or the other, or runs that wait would hold the places of those they wait for."""
QUEUE_TAG = "dagster-celery/queue"


def broker_of(settings: Settings) -> str:
    """Return the broker's address.

    Raises:
        ConfigurationError: none is set.
    """
    told = settings.get(BROKER)
    if not told:
        raise ConfigurationError(
            BROKER, "is not set", "Name the broker that hands out runs: redis://host:6379/0."
        )
    return told


def queue_configuration() -> dict[str, Any]:
    """Return the ``dagster.yaml`` of every process that launches or carries out such runs."""
    import yaml

    configuration: dict[str, Any] = yaml.safe_load(
        packaged_configuration().read_text(encoding="utf-8")
    )
    configuration.pop("run_queue", None)
    configuration["concurrency"].pop("runs", None)
    configuration["concurrency"]["pools"] = {"granularity": "op", "default_limit": 64}
    return {
        **configuration,
        "storage": {"postgres": {"postgres_url": {"env": URL}}},
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
    """Write the configuration into a ``DAGSTER_HOME`` that has none."""
    import yaml

    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / CONFIGURATION
    if not path.exists():
        path.write_text(yaml.safe_dump(queue_configuration(), sort_keys=False), encoding="utf-8")

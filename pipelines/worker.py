"""A worker process: takes runs from the queue and executes them one after the other.

A run is the unit that is handed out, over a range of weeks: inside it steps run one after the
other in one process, as everywhere else. Celery's queue takes the place of Dagster's own, so that
a run waits in one place only.
"""

from __future__ import annotations

import os
import socket
from typing import Any
from urllib.parse import urlsplit

from debrief.cli.shared import console
from debrief.errors import ConfigurationError
from debrief.settings import Settings
from pipelines.instance import open_instance

_QUEUE = "dagster"
"""Of runs: the one that Dagster's Celery app takes from by default."""
_RUNS_A_PROCESS = 20
"""A process is replaced after so many runs, so that none grows for ever."""


def work(settings: Settings, *, name: str = "") -> None:
    """Take runs until this process is stopped; the run under way is finished first.

    Args:
        settings: of this machine.
        name: of the worker; the machine's by default.

    Raises:
        ConfigurationError: the broker or Dagster's database is not set, or what a worker needs
            is not installed.
    """
    broker = settings.broker
    if not broker:
        raise ConfigurationError(
            "DEBRIEF_BROKER",
            "is not set",
            "Name the broker that hands out runs: redis://host:6379/0.",
        )
    if not settings.dagster_database_url:
        raise ConfigurationError(
            "DAGSTER_DATABASE_URL", "is not set", "Name the Postgres that holds Dagster's tables."
        )
    with open_instance(settings.model_copy(update={"launch": "queue"})) as instance:
        home = instance.root_directory
    app = make_app(broker)
    host = urlsplit(broker).hostname or broker
    console().print(f"Worker: runs from {host}, lake {settings.lake}, Dagster in {home}")
    app.worker_main(
        [
            *f"worker --queues {_QUEUE} --concurrency 1 --pool prefork".split(),
            *("--hostname", f"{name or _QUEUE}-{os.getpid()}@{socket.gethostname()}"),
            *("--max-tasks-per-child", str(_RUNS_A_PROCESS)),
            *["--without-gossip", "--without-mingle", "--loglevel", "WARNING"],
        ]
    )


def make_app(broker: str) -> Any:
    """Return Dagster's own Celery app, whose tasks carry out runs.

    Raises:
        ConfigurationError: ``dagster-celery`` is not installed.
    """
    try:
        from dagster_celery.make_app import make_app as stock_app
        from dagster_celery.tasks import create_execute_job_task, create_resume_job_task
    except ImportError as error:
        raise ConfigurationError(
            "debrief worker",
            f"needs what is not installed ({error})",
            "From a checkout: pip install -r deploy/locks/team.lock.",
        ) from error
    make: Any = stock_app
    app = make(
        {
            "broker": broker,
            "backend": broker,
            "config_source": {
                "broker_connection_retry_on_startup": True,
                # A task that waits behind a run of an hour, while another worker is idle, is what
                # prefetching would give.
                "worker_prefetch_multiplier": 1,
                "worker_disable_prefetch": urlsplit(broker).scheme in ("redis", "rediss"),
                "worker_hijack_root_logger": False,
                "task_default_queue": _QUEUE,
            },
        }
    )
    create_execute_job_task(app)
    create_resume_job_task(app)
    return app

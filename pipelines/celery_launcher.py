"""Dagster's Celery launcher, which also notices that a run's worker has died."""

from __future__ import annotations

from typing import Any

import dagster as dg
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

_PATIENCE = 10.0
"""Seconds in which a worker that lives answers, however busy its run is."""


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """Hands runs to Celery, and asks the worker of a run whether it is there.

    Celery goes on calling a task started after its worker died, so Dagster's monitoring would keep
    the run, and its places in pools, until the longest time that a run may take.
    """

    def check_run_worker_health(self, run: dg.DagsterRun) -> Any:
        """Return how the worker of a run is, for Dagster's monitoring."""
        health = super().check_run_worker_health(run)
        if health.status.name != "RUNNING":
            return health
        state = self.celery.AsyncResult(run.tags[DAGSTER_CELERY_TASK_ID_TAG]).info
        name = state.get("hostname") if isinstance(state, dict) else None
        if name is None or self.celery.control.ping([name], timeout=_PATIENCE):
            return health
        return type(health)(type(health.status).FAILED, f"The worker {name} does not answer.")

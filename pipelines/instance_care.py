"""What an instance needs before its daemon and its UI are started.

``python -m pipelines.instance_care [SOCKET]`` makes the tables where there are none, gives pools
their limits, and ends the runs that a code server on the socket had when it went away: nothing
else would notice before the longest that a run may take is over. Those are then taken up again
by Dagster's own run retries.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

import dagster as dg
from dagster import DagsterRunStatus
from dagster._core.storage.tags import GRPC_INFO_TAG

from debrief.settings import load_settings
from pipelines.team_home import make_schema, write_configuration

POOLS: Mapping[str, int] = {"language_model": 2, "langfuse": 1}
"""How many steps of a pool run at once unless somebody chose otherwise: each asks with
``DEBRIEF_CONCURRENCY`` calls at once itself, and Langfuse takes one writer best."""
_RUNNING = [
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def give_limits(instance: dg.DagsterInstance) -> None:
    """Give every pool of ours a limit that has none."""
    chosen = {info.name for info in instance.event_log_storage.get_pool_limits()}
    for pool, limit in POOLS.items():
        if pool not in chosen:
            instance.event_log_storage.set_concurrency_slots(pool, limit)


def end_orphans(instance: dg.DagsterInstance, socket: str) -> list[str]:
    """End the runs of a code server that is not there any more; return their ids."""
    ended = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_RUNNING)):
        told = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
        if told.get("socket") != socket:
            continue
        message = "The process that served it ended, and the run with it."
        if run.status == DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, message)
        else:
            instance.report_run_failed(run, message)
        ended.append(run.run_id)
    return ended


def main(socket: str = "") -> None:
    """Care for the instance that the environment names."""
    settings = load_settings()
    if url := settings.dagster_database_url:
        make_schema(url)
    if settings.dagster_home:
        write_configuration(settings, settings.dagster_home)
    with dg.DagsterInstance.get() as instance:
        give_limits(instance)
        for run_id in end_orphans(instance, socket) if socket else []:
            print(f"ended run {run_id}: its code server is gone")


if __name__ == "__main__":
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    main(*sys.argv[1:])

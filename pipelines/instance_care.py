"""What an instance needs before its daemon and its UI are started.

``python -m pipelines.instance_care [SOCKET]`` makes the tables where there are none, and gives
pools their limits. With a socket it then ends the runs that a former code server on this socket
left behind, which Dagster takes up again by its run retries, and becomes the code server.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping

import dagster as dg
from dagster import DagsterRunStatus

from debrief.settings import load_settings
from pipelines.instance import make_schema, write_configuration

POOLS: Mapping[str, int] = {"language_model": 1, "langfuse": 1}
"""How many steps of a pool run at once unless somebody chose otherwise. Each makes
``DEBRIEF_CONCURRENCY`` calls at once itself, and of two runs over the same weeks the second finds
the first one's rows; Langfuse takes one writer best."""
GRPC_TAG = ".dagster/grpc_info"
"""Dagster's tag of a run that names the code server it runs in."""
_RUNNING = [
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]


def set_pool_limits(instance: dg.DagsterInstance) -> None:
    """Give a limit to every pool of ours that has none."""
    limited = {info.name for info in instance.event_log_storage.get_pool_limits()}
    for pool in POOLS.keys() - limited:
        instance.event_log_storage.set_concurrency_slots(pool, POOLS[pool])


def end_orphans(instance: dg.DagsterInstance, socket: str) -> list[str]:
    """End the runs of a code server that has ended; return their ids."""
    ended = []
    message = "The code server that the run was part of has ended."
    for run in instance.get_runs(dg.RunsFilter(statuses=_RUNNING)):
        if json.loads(run.tags.get(GRPC_TAG, "{}")).get("socket") != socket:
            continue
        if run.status == DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, message)
        else:
            instance.report_run_failed(run, message)
        ended.append(run.run_id)
    return ended


def main(socket: str = "") -> None:
    """Prepare the instance that the environment names; become its code server on a socket."""
    settings = load_settings()
    if settings.dagster_database_url:
        make_schema(settings.dagster_database_url)
    if settings.dagster_home:
        write_configuration(settings, settings.dagster_home)
    with dg.DagsterInstance.get() as instance:
        set_pool_limits(instance)
        for run_id in end_orphans(instance, socket) if socket else []:
            print(f"ended run {run_id}: its code server is gone", flush=True)
    if socket:
        server = "dagster code-server start -m pipelines.definitions --location-name debrief"
        options = ["--use-python-environment-entry-point", "--socket", socket]
        os.execv(sys.executable, [sys.executable, "-m", *server.split(), *options])


if __name__ == "__main__":
    os.environ.setdefault("DAGSTER_DISABLE_TELEMETRY", "1")
    main(*sys.argv[1:])

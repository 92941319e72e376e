"""Runs whose process has died: Dagster goes on counting them as under way until they are ended."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import dagster as dg
import psutil

from debrief.cli.shared import console
from pipelines.programs import accepts

PROCESS_TAG = "debrief/process"
"""The tag of a run that a command carries out: the machine and the process."""
GRPC_TAG = ".dagster/grpc_info"
"""Dagster's tag of a run that names the code server it runs in."""
UNDER_WAY = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def end_dead_runs(instance: dg.DagsterInstance) -> None:
    """Mark the runs as failed that a command carried out, or `debrief ui`, and that died with it.

    Dagster's monitoring knows of neither. A run that the UI re-executes has the tags of the one
    before, and another process.
    """
    is_local = Path(instance.root_directory, "event_log.db").exists()
    for run in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
        host, _, process = run.tags.get(PROCESS_TAG, "").partition(" ")
        server = json.loads(run.tags.get(GRPC_TAG, "{}")).get("socket")
        if host == socket.gethostname() and run.parent_run_id is None:
            is_dead, carrier = not psutil.pid_exists(int(process)), "command"
        else:
            is_dead, carrier = bool(is_local and server and not accepts(Path(server))), "UI"
        if is_dead:
            message = f"The {carrier} that carried it out was killed; what was finished stays."
            instance.report_run_failed(run, message)
            console(stderr=True).print(f"Killed earlier, now marked as failed: {run.run_id[:8]}")


def end_orphans(instance: dg.DagsterInstance, code_socket: str) -> list[str]:
    """End the runs of a code server that has ended; return their ids."""
    ended = []
    message = "The code server that the run was part of has ended."
    for run in instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY)):
        if json.loads(run.tags.get(GRPC_TAG, "{}")).get("socket") != code_socket:
            continue
        if run.status == dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(run, message)
        else:
            instance.report_run_failed(run, message)
        ended.append(run.run_id)
    return ended

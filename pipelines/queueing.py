"""Put runs into Dagster's queue for workers, and wait for one to end."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import dagster as dg

from debrief.errors import DebriefError
from debrief.lake import Lake
from debrief.sessions.store import weeks_in
from debrief.settings import load_settings
from pipelines.instance import installed, prepare_workspace
from pipelines.jobs import IN_WHOLE_GRAPH, range_tags

_LAUNCH = """
mutation Launch($run: ExecutionParams!) { launchRun(executionParams: $run) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
_POLL = 2.0


def runs_over(
    instance: dg.DagsterInstance, lake: Lake, partitions: Sequence[str], assets: Sequence[str] = ()
) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """Yield the assets and the partitions of each run that it takes to make assets over some.

    A run in this process takes any partitions; one that a worker carries out takes a range.
    Partitions that are no neighbours take a run each, and assets without any one in between, as
    in a backfill of the UI. Weeks without a session part no neighbours.

    Args:
        instance: knows the pairs, in Dagster's order.
        lake: knows the weeks.
        partitions: weeks or pairs, in Dagster's order.
        assets: those that are made; all of ``whole_graph`` if none is named.
    """
    if load_settings().launch != "queue":
        yield assets, partitions
        return
    pairs = instance.get_dynamic_partitions("pair")
    order = pairs if set(partitions) <= set(pairs) else sorted({*weeks_in(lake), *partitions})
    found = ranges(order, set(partitions))
    if len(found) < 2:
        yield assets, found[0] if found else ()
        return
    from pipelines.definitions import defs

    graph = defs.resolve_asset_graph()
    made = {dg.AssetKey(name) for name in assets} or IN_WHOLE_GRAPH.resolve(graph)
    keys = [key for key in graph.toposorted_asset_keys if key in made]
    for has_partitions, group in groupby(keys, lambda key: graph.get(key).is_partitioned):
        names = [key.to_user_string() for key in group]
        for neighbours in found if has_partitions else [()]:
            yield names, neighbours


def ranges(order: Sequence[str], keys: Collection[str]) -> list[Sequence[str]]:
    """Return the keys in groups of neighbours in Dagster's order of partitions."""
    groups = groupby(order, keys.__contains__)
    return [list(group) for is_taken, group in groups if is_taken]


def hand_over(
    instance: dg.DagsterInstance,
    job: str,
    partitions: Sequence[str],
    config: dict[str, Any],
    assets: Sequence[str],
) -> tuple[str, bool, list[dg.DagsterEvent]]:
    """Launch a run as the UI does, by the instance's launcher, and wait for its end.

    Returns:
        its id, whether it succeeded, and its events.

    Raises:
        DebriefError: it could not be launched, as when the broker is away.
    """
    from pipelines.definitions import defs

    tags = range_tags(partitions[0], partitions[-1]) if partitions else {}
    run = {
        "selector": {
            "repositoryLocationName": "debrief",
            "repositoryName": "__repository__",
            "pipelineName": job or defs.resolve_implicit_global_asset_job_def().name,
            "assetSelection": [{"path": [asset]} for asset in assets] or None,
        },
        "runConfigData": config,
        "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in tags.items()]},
    }
    workspace = prepare_workspace(Path(instance.root_directory))
    run_id = _launch(workspace, run, job or "backfill")
    while (record := instance.get_run_by_id(run_id)) and not record.is_finished:
        time.sleep(_POLL)
    logs = instance.all_logs(run_id)
    events = [entry.dagster_event for entry in logs if entry.dagster_event]
    success = record is not None and record.status is dg.DagsterRunStatus.SUCCESS
    return run_id, success, events


def _launch(workspace: Path, run: dict[str, Any], name: str) -> str:
    """Return the id of a run that was launched.

    Raises:
        DebriefError: it could not be.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "answer.json")
        command = [installed("dagster-graphql"), "-w", str(workspace), "-t", _LAUNCH]
        command += ["-v", json.dumps({"run": run}), "-o", str(answer)]
        subprocess.run(command, check=False, capture_output=True)
        found = json.loads(answer.read_text())["data"]["launchRun"] if answer.exists() else {}
    if found.get("__typename") != "LaunchRunSuccess":
        reason = found.get("message", "Dagster gave no answer")
        raise DebriefError(name, f"could not be launched: {reason}")
    return str(found["run"]["runId"])

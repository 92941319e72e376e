"""A run that is worked on says so, and notices when it is over."""

from typing import Any

import dagster as dg
from dagster._core.storage.tags import RETRY_NUMBER_TAG

from debrief.settings import load_settings
from debrief.state.leases import Ended, Keeper, keeper_of
from debrief.state.opening import open_state
from debrief.state.watch import watch_of

PARENT_TAG = "debrief/whole_graph"
"""Of a stage's run: the run of the whole graph that launched it."""
ACCOUNT_TAG = "debrief/account"
"""Of a stage's run: the first of the runs of the whole graph that took up what the one before
left, where that is not the one that launched it."""
_STOPPED = (
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
    dg.DagsterRunStatus.CANCELING,
)


def attend(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Keeper:
    """Let it be known that this process works for a run, and watch how the run does.

    Args:
        instance: where the run is; nobody else looks into one that is ephemeral.
        run: the run; the one that launched it counts too.

    Returns:
        What keeps this process's leases.
    """
    keeper = keeper_of_this_machine()
    if instance.is_ephemeral:
        return keeper
    parent = run.tags.get(PARENT_TAG)
    runs = [run.run_id, *filter(None, [parent])]
    watch = keeper.attend(run.run_id, lambda: _ended(instance, runs))
    if parent:
        watch.doubt(watch_of(parent).check)
    return keeper


def account_of(run: dg.DagsterRun) -> str:
    """Return what a run's spending is counted under: one limit holds for all that belong together.

    That is the run of the whole graph that launched it, and of runs that were tried again by
    themselves after they were killed, the first one. A person who runs one again means a new one.
    """
    first = run.root_run_id if RETRY_NUMBER_TAG in run.tags else None
    return run.tags.get(ACCOUNT_TAG) or run.tags.get(PARENT_TAG) or first or run.run_id


def steps_have_processes(context: dg.OpExecutionContext | dg.AssetExecutionContext) -> bool:
    """Return whether a step's process is not the run's own, which may die and leave it behind."""
    name = context.job_def.executor_def.name
    execution: Any = context.run.run_config.get("execution") or {}
    config = execution.get("config") or {}
    return name == "multiprocess" or (
        name == "multi_or_in_process_executor" and "in_process" not in config
    )


def keeper_of_this_machine() -> Keeper:
    """Return what keeps this process's leases, as the settings say.

    Raises:
        ConfigurationError: a setting is wrong, or the shared state cannot be opened.
    """
    settings = load_settings()
    return keeper_of(open_state(settings), dead=settings.lease_seconds)


def _ended(instance: dg.DagsterInstance, runs: list[str]) -> Ended | None:
    """Return how a run or its parent ended; None too while nobody can tell."""
    try:
        found = {run.run_id: run for run in instance.get_runs(dg.RunsFilter(run_ids=runs))}
    except Exception:
        # The storage is away, in whichever way it says so; the run goes on until it is back.
        return None
    own = found.get(runs[0])
    if own is None:
        return Ended("it was deleted")
    for run in found.values():
        if run.status in _STOPPED:
            whose = "it" if run is own else f"run {run.run_id[:8]}, which launched it,"
            return Ended(f"{whose} is marked as {run.status.value.lower()}")
    return Ended() if own.is_finished else None

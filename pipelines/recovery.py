"""Runs that stand as started although whoever worked on them is dead: found, and marked.

Dagster learns of a run's end from the run itself, so one that was killed with everything around
it stays as started for good. Runs of ours keep a sign of life in the shared state; when the last
of a run's signs is dead, so is the run. Marked as failed it shows the truth, and a deployment's
retries take it up.
"""

import time

import dagster as dg

from debrief.errors import DebriefError
from debrief.state.leases import Keeper
from debrief.state.processes import decoded
from debrief.state.store import Lease
from resources.attendance import PARENT_TAG, keeper_of_this_machine

EVERY_SECONDS = 15
_UNDER_WAY = [dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]


def settle_dead_runs(instance: dg.DagsterInstance, keeper: Keeper | None = None) -> list[str]:
    """Mark the runs that nobody works on any more as failed, with the reason.

    Args:
        instance: where the runs are.
        keeper: knows who is alive; by default the one that the settings name.

    Returns:
        The ids of the runs that were marked.
    """
    runs = instance.get_runs(dg.RunsFilter(statuses=_UNDER_WAY))
    if not runs:
        return []
    keeper = keeper or keeper_of_this_machine()
    found = {run.run_id: keeper.leases_of(run.run_id) for run in runs}
    settled = []
    for run in runs:
        leases = found[run.run_id] or found.get(run.tags.get(PARENT_TAG, ""), [])
        if not leases or not all(keeper.is_dead(lease) for lease in leases):
            continue
        now = instance.get_run_by_id(run.run_id)
        if now is None or now.status not in _UNDER_WAY:
            continue
        if now.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(now, _told(leases))
        else:
            instance.report_run_failed(now, _told(leases))
        settled.append(run.run_id)
    return settled


@dg.sensor(
    minimum_interval_seconds=EVERY_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Marks runs as failed whose process was killed and that would stand as started for good. "
        "What they had finished stays, and the next run goes on from there."
    ),
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Look at the runs under way."""
    settled = settle_dead_runs(context.instance)
    if not settled:
        return dg.SkipReason("Every run under way is being worked on.")
    return dg.SkipReason(f"Marked as failed: {', '.join(run[:8] for run in settled)}.")


def settle_at_start(instance: dg.DagsterInstance) -> None:
    """Settle dead runs before a command starts new ones; what prevents that prevents no command."""
    from debrief.cli.console import console

    try:
        settled = settle_dead_runs(instance)
    except DebriefError as error:
        console(stderr=True).print(f"Runs that were killed stay as they are: {error}")
        return
    if settled:
        told = ", ".join(run[:8] for run in settled)
        console(stderr=True).print(f"Killed earlier, now marked as failed: run {told}")


def _told(leases: list[Lease]) -> str:
    last = max(leases, key=lambda lease: lease.beat)
    process = decoded(last.process)
    whose = f"{process.told[0].upper()}{process.told[1:]}" if process is not None else "Its process"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(last.beat))
    return (
        f"{whose} worked on this run and was last heard of at {since} UTC: it was killed, or its "
        "machine went down. What was finished stays; the next run goes on from there."
    )

"""Runs that stand as started although whoever worked on them is dead: found, and marked.

Dagster learns of a run's end from the run itself, so one that was killed with everything around
it stays as started for good. Runs of ours keep a sign of life in the shared state; when the last
of a run's signs is dead, so is the run. Marked as failed it shows the truth, and a deployment's
retries take it up.
"""

import json
import time

import dagster as dg
from dagster._core.events import JobFailureData, RunFailureReason
from dagster._core.storage.tags import GRPC_INFO_TAG

from debrief.errors import DebriefError
from debrief.state.leases import Keeper
from debrief.state.processes import decoded
from debrief.state.store import Lease
from resources.attendance import PARENT_TAG, keeper_of_this_machine

EVERY_SECONDS = 10
_UNDER_WAY = [
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_NO_SERVER = (
    "The code server that ran this is gone, and no step of it gave a sign of life. What was "
    "finished stays; the next run goes on from there."
)
_ENDED = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def settle_dead_runs(instance: dg.DagsterInstance, keeper: Keeper | None = None) -> list[str]:
    """Mark the runs that nobody works on any more as failed, with the reason.

    Where Dagster's own monitoring is off, those too that did not begin, or did not stop, in the
    time that its settings give.

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
        reason = _why_dead(instance, keeper, run, leases)
        now = instance.get_run_by_id(run.run_id) if reason else None
        if now is None or now.status is not run.status:
            continue
        if now.status is dg.DagsterRunStatus.CANCELING:
            instance.report_run_canceled(now, reason)
        else:
            never = now.status is dg.DagsterRunStatus.STARTING
            why = JobFailureData(None, RunFailureReason.START_TIMEOUT) if never else None
            instance.report_run_failed(now, reason, why)
        settled.append(run.run_id)
    return settled


def _why_dead(
    instance: dg.DagsterInstance, keeper: Keeper, run: dg.DagsterRun, leases: list[Lease]
) -> str:
    """Return why nobody will work on a run any more; empty while somebody may."""
    if leases:
        return _told(leases) if all(keeper.is_dead(lease) for lease in leases) else ""
    if _silence(instance, run) > keeper.dead and _server_is_gone(run):
        return _NO_SERVER
    return _late(instance, run)


def _late(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return what is told of a run that should have begun or stopped; empty for any other.

    Dagster's monitoring does this itself, but can be switched on only where each run has a worker
    of its own: it would end the stages that a run of the whole graph makes in its process.
    """
    marks = {
        dg.DagsterRunStatus.STARTING: (
            dg.DagsterEventType.PIPELINE_STARTING,
            instance.run_monitoring_start_timeout_seconds,
            "begin",
        ),
        dg.DagsterRunStatus.CANCELING: (
            dg.DagsterEventType.PIPELINE_CANCELING,
            instance.run_monitoring_cancel_timeout_seconds,
            "stop",
        ),
    }
    if instance.run_monitoring_enabled or run.status not in marks:
        return ""
    mark, limit, what = marks[run.status]
    since = _last_event(instance, run, mark)
    if since is None or time.time() - since < limit:
        return ""
    told = f"It did not {what} within {limit:g} s (run_monitoring in dagster.yaml)."
    return f"{told} {_told_by_launcher(instance, run)}".strip()


def _told_by_launcher(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Return what the launcher knows of a run's worker, such as why its pod is not there."""
    try:
        return instance.run_launcher.get_run_worker_debug_info(run) or ""
    except Exception as error:
        # It is asked for a hint, and a cluster that does not answer is one.
        return f"What launched it knows nothing of it: {error}"


def _silence(instance: dg.DagsterInstance, run: dg.DagsterRun) -> float:
    """Return the seconds since a run's last event."""
    last = _last_event(instance, run)
    return time.time() - last if last is not None else 0.0


def _last_event(
    instance: dg.DagsterInstance, run: dg.DagsterRun, kind: dg.DagsterEventType | None = None
) -> float | None:
    """Return when a run's last event was, or the last of a kind."""
    last = instance.event_log_storage.get_logs_for_run(
        run.run_id, of_type=kind, limit=1, ascending=False
    )
    return last[0].timestamp if last else None


def _server_is_gone(run: dg.DagsterRun) -> bool:
    """Return whether the code server that was to run it cannot be reached any more.

    A run with steps in processes of their own gives no sign of life while none of them runs.
    """
    from dagster._core.errors import DagsterUserCodeUnreachableError
    from dagster._grpc.client import DagsterGrpcClient

    told = run.tags.get(GRPC_INFO_TAG)
    if not told:
        return False
    place = json.loads(told)
    client = DagsterGrpcClient(
        port=place.get("port"),
        socket=place.get("socket"),
        host=place.get("host") or "localhost",
        use_ssl=bool(place.get("use_ssl")),
    )
    try:
        client.ping("")
    except DagsterUserCodeUnreachableError:
        return True
    return False


def free_slots(instance: dg.DagsterInstance, keeper: Keeper | None = None) -> list[str]:
    """Give back the places in pools that ended runs still take, when nobody works for them.

    A run gives its places back itself, but for one whose process was killed nobody does.

    Args:
        instance: where the runs are.
        keeper: knows who is alive; by default the one that the settings name.

    Returns:
        The ids of the runs whose places were given back.
    """
    storage = instance.event_log_storage
    if not storage.supports_global_concurrency_limits:
        return []
    holders = storage.get_concurrency_run_ids()
    if not holders:
        return []
    ended = dg.RunsFilter(run_ids=list(holders), statuses=_ENDED)
    keeper = keeper or keeper_of_this_machine()
    freed = []
    for run in instance.get_runs(ended):
        if all(keeper.is_dead(lease) for lease in keeper.leases_of(run.run_id)):
            storage.free_concurrency_slots_for_run(run.run_id)
            freed.append(run.run_id)
    return freed


@dg.sensor(
    minimum_interval_seconds=EVERY_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Marks runs as failed whose process was killed and that would stand as started for good, "
        "or whose process never came to be, and gives their places in pools back. What they had "
        "finished stays, and the next run goes on from there."
    ),
)
def dead_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Look at the runs under way, and at the pools."""
    told = []
    if settled := settle_dead_runs(context.instance):
        told.append(f"Marked as failed: {_short(settled)}.")
    if freed := free_slots(context.instance):
        told.append(f"Places in pools given back for: {_short(freed)}.")
    return dg.SkipReason(" ".join(told) or "Every run under way is being worked on.")


def settle_at_start(instance: dg.DagsterInstance) -> None:
    """Settle dead runs before a command starts new ones; what prevents that prevents no command."""
    from debrief.cli.console import console

    try:
        settled = settle_dead_runs(instance)
        free_slots(instance)
    except DebriefError as error:
        console(stderr=True).print(f"Runs that were killed stay as they are: {error}")
        return
    if settled:
        console(stderr=True).print(f"Killed earlier, now marked as failed: run {_short(settled)}")


def _short(runs: list[str]) -> str:
    return ", ".join(run[:8] for run in runs)


def _told(leases: list[Lease]) -> str:
    last = max(leases, key=lambda lease: lease.beat)
    process = decoded(last.process)
    whose = f"{process.told[0].upper()}{process.told[1:]}" if process is not None else "Its process"
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(last.beat))
    return (
        f"{whose} worked on this run and was last heard of at {since} UTC: it was killed, or its "
        "machine went down. What was finished stays; the next run goes on from there."
    )

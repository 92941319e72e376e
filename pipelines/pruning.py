"""Delete old runs and events from Dagster's storage, except those still needed."""

from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DagsterRunStatus
from msgspec import Struct

from debrief.errors import InputError
from debrief.settings import load_settings
from pipelines.instance import newest_materializations

_FINISHED = [DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED]


class Pruned(Struct, frozen=True):
    """The result of a pruning."""

    runs: tuple[str, ...]
    """Ids of the deleted runs."""
    kept: int
    """Old runs that stay, because they made the newest version of a partition."""


def prune(instance: dg.DagsterInstance, days: float, *, dry_run: bool = False) -> Pruned:
    """Delete the runs that were made longer ago, with their events and logs.

    Dagster knows a partition by its newest materialization, so a run that holds such a one stays
    however old it is: without it, the partition would look missing, and a backfill would make it
    again.

    Args:
        instance: whose runs.
        days: how old a run may be.
        dry_run: only count.
    """
    before = datetime.now(UTC) - timedelta(days=days)
    old = instance.get_run_ids(dg.RunsFilter(statuses=_FINISHED, created_before=before))
    newest = newest_materializations(instance) if old else ()
    needed = {entry.run_id for entry in newest}
    deleted = [run_id for run_id in old if run_id not in needed]
    for run_id in deleted if not dry_run else ():
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    return Pruned(tuple(deleted), len(old) - len(deleted))


class Keep(dg.Config):
    """How long runs are kept."""

    days: float = 0.0
    """0: as ``DEBRIEF_KEEP_RUNS_DAYS`` says, else 90."""
    dry_run: bool = False


@dg.op(description="Delete old runs and their events; runs that partitions rest on stay.")
def delete_old_runs(context: dg.OpExecutionContext, config: Keep) -> None:
    """Prune the instance of this run."""
    days = config.days or load_settings().keep_runs_days
    pruned = prune(context.instance, days, dry_run=config.dry_run)
    verb = "would be deleted" if config.dry_run else "were deleted"
    context.log.info(f"{len(pruned.runs)} runs {verb}; {pruned.kept} old ones are still needed")
    context.add_output_metadata({"runs": len(pruned.runs), "kept": pruned.kept})


@dg.op(
    ins={"after": dg.In(dg.Nothing)},
    description="Forget sessions that ended longer ago than DEBRIEF_KEEP_SESSIONS_DAYS says.",
)
def forget_old_sessions(context: dg.OpExecutionContext) -> None:
    """Forget what is older than the setting; without one, nothing."""
    from debrief.forgetting.choosing import NOTHING, Choice
    from pipelines.forgetting import BUSY, forget_sessions

    settings = load_settings()
    if settings.keep_sessions_days is None:
        return
    before = (datetime.now(UTC) - timedelta(days=settings.keep_sessions_days)).date()
    try:
        receipt = forget_sessions(
            settings, Choice(before=before), instance=context.instance, of_run=context.run_id
        )
    except InputError as error:
        if error.code not in (NOTHING, BUSY):
            raise
        context.log.info(f"nothing was forgotten: {error}")
        return
    context.log.info(f"{len(receipt.sessions)} sessions that ended before {before} are forgotten")
    context.add_output_metadata({"sessions": len(receipt.sessions)})


@dg.job(
    description=(
        "Deletes runs and events that are older than 90 days (DEBRIEF_KEEP_RUNS_DAYS), apart from "
        "the runs that made what is newest of a partition. Where DEBRIEF_KEEP_SESSIONS_DAYS is "
        "set, sessions that ended longer ago are forgotten; else the lake is not touched."
    )
)
def prune_runs() -> None:
    """Keep Dagster's storage from growing for ever, and sessions no longer than is wanted."""
    forget_old_sessions(delete_old_runs())


nightly_pruning = dg.ScheduleDefinition(
    name="nightly_pruning",
    job=prune_runs,
    cron_schedule="30 4 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every night at half past four, UTC: old runs go, and old sessions if so set.",
)

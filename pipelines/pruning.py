"""Old runs and their events, taken out of Dagster's storage; what tells of today's state stays."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster import DagsterEventType
from dagster._core.storage.dagster_run import FINISHED_STATUSES
from msgspec import Struct

from debrief.settings import load_settings

_PAGE = 500


class Pruned(Struct, frozen=True):
    """What a pruning came to."""

    runs: tuple[str, ...]
    """Ids of the runs that went."""
    kept: int
    """Old runs that stay, because a partition is as it is by them."""


def keep_days() -> float:
    """Return for how many days runs are kept, as the environment says."""
    return load_settings().keep_runs_days


def prune(instance: dg.DagsterInstance, days: float, *, dry_run: bool = False) -> Pruned:
    """Delete the runs that were made longer ago, with their events and logs.

    Dagster knows of a partition by the newest materialization of it, so a run that holds such a
    one stays however old it is: without it, partitions would look missing, and a backfill would
    take them again.

    Args:
        instance: whose runs.
        days: how old a run may be.
        dry_run: only tell.
    """
    before = datetime.now(UTC) - timedelta(days=days)
    wanted = dg.RunsFilter(statuses=list(FINISHED_STATUSES), created_before=before)
    old = instance.get_run_ids(wanted)
    needed = _makers(instance) if old else set()
    gone = [run_id for run_id in old if run_id not in needed]
    for run_id in gone if not dry_run else ():
        instance.delete_run(run_id)
        instance.compute_log_manager.delete_logs(prefix=[run_id])
    return Pruned(tuple(gone), len(old) - len(gone))


def _makers(instance: dg.DagsterInstance) -> set[str]:
    """Return the runs that made what is newest of every partition of every asset."""
    made: set[str] = set()
    for key in instance.all_asset_keys():
        newest = instance.get_latest_materialization_event(key)
        if newest is not None:
            made.add(newest.run_id)
        by_partition = instance.event_log_storage.get_latest_storage_id_by_partition(
            key, DagsterEventType.ASSET_MATERIALIZATION
        )
        made |= _runs_of(instance, key, by_partition.values())
    return made


def _runs_of(
    instance: dg.DagsterInstance, key: dg.AssetKey, storage_ids: Iterable[int]
) -> set[str]:
    found: set[str] = set()
    wanted = sorted(storage_ids)
    for start in range(0, len(wanted), _PAGE):
        part = wanted[start : start + _PAGE]
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(key, storage_ids=part), limit=len(part)
        ).records
        found.update(record.run_id for record in records)
    return found


class Keep(dg.Config):
    """How long runs are kept."""

    days: float = 0.0
    """0: as ``DEBRIEF_KEEP_RUNS_DAYS`` says, else 90."""
    dry_run: bool = False


@dg.op(description="Delete old runs and their events; runs that partitions rest on stay.")
def delete_old_runs(context: dg.OpExecutionContext, config: Keep) -> None:
    """Prune the instance that this run is of."""
    done = prune(context.instance, config.days or keep_days(), dry_run=config.dry_run)
    told = "would go" if config.dry_run else "are gone"
    context.log.info(f"{len(done.runs)} runs {told}; {done.kept} old ones are still needed")
    context.add_output_metadata({"runs": len(done.runs), "kept": done.kept})


@dg.job(
    description=(
        "Deletes runs and events that are older than 90 days (DEBRIEF_KEEP_RUNS_DAYS), apart from "
        "the runs that made what is newest of a partition. Nothing in the lake is touched."
    )
)
def prune_runs() -> None:
    """Keep Dagster's storage from growing for ever."""
    delete_old_runs()


nightly_pruning = dg.ScheduleDefinition(
    name="nightly_pruning",
    job=prune_runs,
    cron_schedule="30 4 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Every night at half past four, UTC: old runs go.",
)

"""What all week-partitioned stages have in common: filling a week's table, once."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import dagster as dg
import msgspec

from debrief.digests import digest_of
from debrief.errors import ModelError
from debrief.lake import Lake

PROGRESS = "debrief.progress"
"""Logger of single steps forward. Not the run's own log: Dagster stores each of its lines as an
event, which costs more than a week of a cheap stage does."""

Row = TypeVar("Row", bound=msgspec.Struct)
Metadata = Mapping[str, Any]


class Filled(msgspec.Struct, Generic[Row], frozen=True):
    """A week's table after its stage ran."""

    rows: list[Row]
    changed: bool
    """False when the same rows had been there before."""
    skipped: bool
    """True when nothing that they are made from had changed, so that no row was looked at."""


def upstream(lake: Lake, *tables: str, week: str) -> str:
    """Return a digest of what the named tables hold of a week."""
    return digest_of([getattr(lake.stamp(table, week), "digest", None) for table in tables])


def fill(
    lake: Lake,
    table: str,
    week: str,
    row_type: type[Row],
    made_from: str,
    make: Callable[[list[Row]], Iterable[Row]],
    done: Callable[[Row], bool] = lambda row: True,
    *,
    dry: bool = False,
) -> Filled[Row]:
    """Fill one week of a table, unless it was filled from the same before.

    Args:
        lake: where the table is.
        table: its name.
        week: its partition.
        row_type: its rows.
        made_from: digest of all that the rows depend on.
        make: gets the rows of the last time and returns those of this time.
        done: tells whether a row is final; while one is not, the next run tries again.
        dry: make the rows and throw them away, for what making them would cost.
    """
    stamp = lake.stamp(table, week)
    previous = list(lake.read(table, week, row_type))
    if stamp is not None and stamp.inputs == made_from:
        return Filled(previous, changed=False, skipped=True)
    if dry:
        with suppress(ModelError):
            deque(make(previous), maxlen=0)
        return Filled(previous, changed=False, skipped=False)
    rows = list(make(previous))
    final = made_from if all(done(row) for row in rows) else ""
    written = lake.write(table, week, rows, row_type, lambda: final)
    return Filled(rows, changed=written.changed, skipped=False)


def each_week(
    context: dg.AssetExecutionContext, one_week: Callable[[str], Metadata]
) -> dg.MaterializeResult[None]:
    """Run ``one_week`` for each week of the run and file what it says of itself with the week."""
    weeks = list(context.partition_keys)
    name = context.asset_key.to_user_string()
    rows = 0
    for number, week in enumerate(weeks, 1):
        metadata = dict(one_week(week))
        told = metadata.pop("told", "")
        count = int(metadata["dagster/partition_row_count"])
        rows += count
        told = f"{week} ({number} of {len(weeks)}): {told or f'{count} rows'}"
        logging.getLogger(PROGRESS).info("%s %s", name, told)
        context.add_asset_metadata(metadata, partition_key=week)
    context.log.info(f"{name}: {rows} rows in {len(weeks)} weeks, {weeks[0]} to {weeks[-1]}")
    return dg.MaterializeResult(metadata={"rows_in_this_run": rows})


def checked(context: dg.AssetCheckExecutionContext, lake: Lake, table: str) -> list[str]:
    """Return the weeks that a check looks at: those of its run, or all when it runs alone."""
    if context.has_partition_key_range or context.has_partition_key:
        return list(context.partition_keys)
    return lake.partitions(table)


def counted(rows: Sequence[Any]) -> dict[str, Any]:
    """Return the row count under the name that Dagster's UI draws."""
    return {"dagster/partition_row_count": len(rows)}


def weekly_asset(**options: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return ``dg.asset`` with what every week-partitioned stage has."""
    from assets.partitions import ONE_RUN, WEEKS

    decorate: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
        partitions_def=WEEKS,
        backfill_policy=ONE_RUN,
        owners=["team:debrief"],
        kinds={"python", "parquet"},
        **options,
    )
    return decorate

"""What all week-partitioned stages have in common: filling a week's table, once."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import wraps
from typing import Any, Generic, TypeVar

import dagster as dg
import msgspec
from dagster._core.definitions.data_version import extract_data_version_from_entry

from assets.disk import room
from assets.leasing import leased, still_ours
from assets.progress import PROGRESS
from assets.scope import Scope, scope, scoped
from debrief.digests import digest_of
from debrief.errors import DebriefError, ModelError
from debrief.lake import Lake
from debrief.sessions.heads import SessionHead

ROWS = "rows_digest"
"""Metadata: the first hex digits of the SHA-256 of a partition's rows."""
_SHOWN = 16

Row = TypeVar("Row", bound=msgspec.Struct)
Metadata = Mapping[str, Any]


class Filled(msgspec.Struct, Generic[Row], frozen=True):
    """A week's table after its stage ran."""

    rows: list[Row]
    changed: bool
    """False when the same rows had been there before."""
    skipped: bool
    """True when nothing that they are made from had changed, so that no row was looked at."""
    fresh: int = 0
    """Rows that had not been there before, or not so."""


_MADE: ContextVar[list[int]] = ContextVar("made")
"""Rows that the fills of the week under way made."""


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
    narrowed: bool = False,
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
        narrowed: ``make`` keeps to the sessions of the run's scope. Rows of others stay, and the
            week is not up to date until it was taken whole.
    """
    stamp = lake.stamp(table, week)
    previous = list(lake.read(table, week, row_type))
    current = stamp is not None and stamp.inputs == made_from
    if current and not scope().again:
        return Filled(previous, changed=False, skipped=True)
    if dry:
        with suppress(ModelError):
            deque(make(previous), maxlen=0)
        return Filled(previous, changed=False, skipped=False)
    rows = list(make(previous))
    still_ours()
    whole = current or not (narrowed and scope().where)
    final = made_from if whole and all(done(row) for row in rows) else ""
    written = lake.write(table, week, rows, row_type, lambda: final)
    fresh = _fresh(previous, rows) if written.changed else 0
    if (made := _MADE.get(None)) is not None:
        made.append(fresh)
    return Filled(rows, changed=written.changed, skipped=False, fresh=fresh)


def _fresh(previous: Iterable[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> int:
    encode = msgspec.msgpack.Encoder().encode
    before = {encode(row) for row in previous}
    return sum(encode(row) not in before for row in rows)


def completed(lake: Lake, week: str, made: Iterable[Row], previous: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows that were made, and in their place those of sessions out of scope.

    Args:
        lake: where the sessions are.
        week: the week.
        made: rows of the sessions in the run's scope, in the sessions' order; each has a
            ``session_id``.
        previous: rows of an earlier run by the same evaluator; what is gone from the week is
            dropped.
    """
    chosen: Scope = scope()
    if not chosen.where:
        yield from made
        return
    order = [head.id for head in lake.read("raw_sessions", week, SessionHead)]
    place = {name: number for number, name in enumerate(order)}
    kept = place.keys() - chosen.ids(lake, week)
    rows = [(getattr(row, "session_id", ""), row) for row in made]
    rows += [(name, row) for row in previous if (name := getattr(row, "session_id", "")) in kept]
    yield from (row for _, row in sorted(rows, key=lambda pair: place[pair[0]]))


def data_version(context: dg.AssetExecutionContext, digests: Mapping[str, str]) -> dg.DataVersion:
    """File each partition's digest, and return what Dagster tells by what is stale after it.

    Dagster gives all partitions of a run one version. So when their rows are all what they were,
    and had one version, that is kept; else a new one is given to all of them, which at worst
    shows as stale what a run would find unchanged, and never the other way round.

    Args:
        context: of the run.
        digests: of the rows, by partition.
    """
    before: set[str | None] = set()
    for partition, digest in digests.items():
        before.add(_version_with(context, partition, digest))
    for partition, digest in digests.items():
        context.add_asset_metadata({ROWS: digest[:_SHOWN]}, partition_key=partition)
    (kept,) = before if len(before) == 1 else (None,)
    return dg.DataVersion(kept or digest_of(digests)[:16])


def _version_with(context: dg.AssetExecutionContext, partition: str, digest: str) -> str | None:
    """Return the version that a partition was given with these very rows; None if it was not."""
    record = context.instance.get_latest_data_version_record(
        context.asset_key, partition_key=partition
    )
    materialization = record.asset_materialization if record is not None else None
    if record is None or materialization is None:
        return None
    told = materialization.metadata.get(ROWS)
    version = extract_data_version_from_entry(record.event_log_entry)
    same = told is not None and str(told.value)[:_SHOWN] == digest[:_SHOWN]
    return version.value if version is not None and same else None


def digests_of(lake: Lake, table: str, partitions: Iterable[str]) -> dict[str, str]:
    """Return the digest of the rows of each partition; of one that is not there, nothing's."""
    stamps = {partition: lake.stamp(table, partition) for partition in partitions}
    return {name: stamp.digest if stamp is not None else "" for name, stamp in stamps.items()}


@contextmanager
def working(
    context: dg.AssetExecutionContext, lake: Lake, table: str, partition: str
) -> Iterator[None]:
    """Work on one partition: alone, in the run's scope, and saying so when the disk is full.

    Raises:
        RunOverError: the run was over before its turn came.
        DiskFullError: there is no room for what was made.
    """
    with leased(context, lake, table, partition), scoped(context), room(lake, table, partition):
        yield


def each_week(
    context: dg.AssetExecutionContext,
    lake: Lake,
    one_week: Callable[[str], Metadata],
    digests: Callable[[], Mapping[str, str]] | None = None,
) -> dg.MaterializeResult[None]:
    """Run ``one_week`` for each week of the run and file what it says of itself with the week.

    Args:
        context: of the run.
        lake: where the asset's table is, which is named as the asset.
        one_week: makes one week and returns its metadata.
        digests: of what each week has now, for an asset that has no table.
    """
    weeks = list(context.partition_keys)
    name = context.asset_key.to_user_string()
    rows = 0
    for number, week in enumerate(weeks, 1):
        made: list[int] = []
        token = _MADE.set(made)
        try:
            with working(context, lake, name, week):
                metadata = {"made_now": 0, **one_week(week)}
        finally:
            _MADE.reset(token)
        metadata["made_now"] += sum(made)
        count = int(metadata["dagster/partition_row_count"])
        rows += count
        told = metadata.pop("told", "") or f"{count} rows"
        logging.getLogger(PROGRESS).info(
            "%s %s (%d of %d): %s", name, week, number, len(weeks), told
        )
        context.add_asset_metadata({"in_short": told, **metadata}, partition_key=week)
    context.log.info(f"{name}: {rows} rows in {len(weeks)} weeks, {weeks[0]} to {weeks[-1]}")
    found = digests() if digests is not None else digests_of(lake, name, weeks)
    return dg.MaterializeResult(data_version=data_version(context, found))


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
    from assets.handing_out import policy_of_weeks
    from assets.partitions import WEEKS

    decorate: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
        partitions_def=WEEKS,
        backfill_policy=policy_of_weeks(),
        owners=["team:debrief"],
        kinds={"python", "parquet"},
        **options,
    )
    return lambda compute: decorate(_telling_why(compute))


def _telling_why(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Have a stage that fails say why in a line of its own: Dagster's own begins with a trace."""

    @wraps(compute)
    def telling(context: dg.AssetExecutionContext, *arguments: Any, **resources: Any) -> Any:
        try:
            return compute(context, *arguments, **resources)
        except DebriefError as error:
            context.log.error(str(error))
            raise

    return telling

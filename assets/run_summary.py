"""What runs made, read from their materializations: for the weekly report and the terminal."""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg
from msgspec.structs import replace

from debrief.weekly.model import Done, added_up
from resources.evaluator import account_of

_ROOT, _BACKFILL = "dagster/root_run_id", "dagster/backfill"


def done_with(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[Done]:
    """Return what was made by a run, the runs that it retries, and those of its backfill."""
    backfill, root = run.tags.get(_BACKFILL), account_of(run)
    runs = {run.run_id: run}
    for tags in (
        {_BACKFILL: backfill} if backfill else {},
        {_ROOT: root} if root != run.run_id else {},
    ):
        if tags:
            runs |= {each.run_id: each for each in instance.get_runs(dg.RunsFilter(tags=tags))}
    if (first := instance.get_run_by_id(root)) is not None:
        runs[root] = first
    parts: dict[tuple[str, str], list[Done]] = {}
    for run_id in runs:
        records = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        for part in done_in(each.dagster_event for each in records if each.dagster_event):
            parts.setdefault((part.stage, part.partition), []).append(part)
    return [
        replace(
            added_up(stage, each), partition=partition, rows=each[-1].rows, failed=each[-1].failed
        )
        for (stage, partition), each in parts.items()
    ]


def done_in(events: Iterable[dg.DagsterEvent]) -> Iterator[Done]:
    """Yield what was made of each partition, in the order of the events."""
    for event in events:
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            yield _done(event.step_materialization_data.materialization)


def _done(materialization: dg.AssetMaterialization) -> Done:
    values = {name: value.value for name, value in materialization.metadata.items()}

    def whole(name: str) -> int:
        value: Any = values.get(name)
        return value if isinstance(value, int) else 0

    calls, cost = whole("calls"), values.get("cost_usd")
    unknown = None if calls else 0.0
    return Done(
        stage=materialization.asset_key.to_user_string(),
        partition=materialization.partition or "",
        rows=whole("dagster/partition_row_count") or whole("dagster/row_count"),
        fresh=whole("made_now"),
        failed=whole("failed"),
        calls=calls,
        input_tokens=whole("input_tokens"),
        output_tokens=whole("output_tokens"),
        cost_usd=float(cost) if isinstance(cost, int | float) else unknown,
    )

"""What runs did, read off their materializations: for the person at the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg
from dagster import DagsterEvent, DagsterEventType, DagsterInstance

from debrief.weekly.model import Done


def done_in(events: Iterable[DagsterEvent]) -> Iterator[Done]:
    """Yield what was done for each partition, in the order of the events."""
    for event in events:
        if event.event_type is DagsterEventType.ASSET_MATERIALIZATION:
            yield _done(event.step_materialization_data.materialization)


def done_below(instance: DagsterInstance, tag: str, parent: str) -> list[Done]:
    """Return what the runs did that carry ``tag`` with their parent's id, oldest first."""
    runs = instance.get_runs(dg.RunsFilter(tags={tag: parent}))
    found: list[Done] = []
    for run in reversed(runs):
        entries = instance.all_logs(run.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION)
        found += done_in(entry.dagster_event for entry in entries if entry.dagster_event)
    return found


def _done(materialization: dg.AssetMaterialization) -> Done:
    values = {name: value.value for name, value in materialization.metadata.items()}
    calls = _whole(values, "calls")
    return Done(
        stage=materialization.asset_key.to_user_string(),
        partition=materialization.partition or "",
        rows=_whole(values, "dagster/partition_row_count"),
        fresh=_whole(values, "made_now"),
        failed=_whole(values, "failed"),
        calls=calls,
        input_tokens=_whole(values, "input_tokens"),
        output_tokens=_whole(values, "output_tokens"),
        cost_usd=_cost(values.get("cost_usd"), calls),
    )


def _whole(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else 0


def _cost(value: Any, calls: int) -> float | None:
    if isinstance(value, int | float):
        return float(value)
    return None if calls else 0.0

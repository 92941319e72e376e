"""What runs did, read off their materializations: for the person at the terminal and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg
from dagster import DagsterEvent, DagsterEventType, DagsterInstance
from msgspec.structs import replace

from debrief.weekly.model import Done, added_up
from resources.attendance import ACCOUNT_TAG, PARENT_TAG


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


def done_for(instance: DagsterInstance, account: str) -> list[Done]:
    """Return what was done for one run of the whole graph, also before it was killed and retried.

    Args:
        instance: where the runs are.
        account: what ``account_of`` says of the run and of those it launched.
    """
    parts = done_below(instance, PARENT_TAG, account) + done_below(instance, ACCOUNT_TAG, account)
    found: dict[tuple[str, str], list[Done]] = {}
    for part in parts:
        found.setdefault((part.stage, part.partition), []).append(part)
    return [_in_turn(each) for each in found.values()]


def _in_turn(parts: list[Done]) -> Done:
    """Return what was done for one partition by runs that came one after the other."""
    last = parts[-1]
    whole = added_up(last.stage, parts)
    return replace(whole, partition=last.partition, rows=last.rows, failed=last.failed)


def _done(materialization: dg.AssetMaterialization) -> Done:
    values = {name: value.value for name, value in materialization.metadata.items()}
    calls = _whole(values, "calls")
    return Done(
        stage=materialization.asset_key.to_user_string(),
        partition=materialization.partition or "",
        rows=_whole(values, "dagster/partition_row_count") or _whole(values, "dagster/row_count"),
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

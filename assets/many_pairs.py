"""Many pairs of task and fingerprint in one run, which Dagster's ranges of partitions cannot say.

A range of two dimensions is a rectangle. Pairs that lie scattered over the cross product would
take a run each, and a run costs more than an unchanged training set does. So a run that the
command or the whole graph starts has one pair for its partition, and names the others in its
configuration.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_EVENT_POINTER,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)

from assets.partitions import FINGERPRINT, TASK, pair_of

MOST = 200
"""Pairs of one run: its page in the UI shows each of them."""
COUNT_TAG = "debrief/pairs"
"""Of a run over several pairs: how many."""
_VERSION = 16
_COUNT = "dagster/partition_row_count"


def pair_key(task: str, fingerprint: str) -> str:
    """Return a pair's partition key."""
    return str(dg.MultiPartitionKey({TASK: task, FINGERPRINT: fingerprint}))


def runs_over(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, ...]]:
    """Yield the partition keys of each run that it takes: all pairs, and none but them."""
    keys = sorted(pair_key(*pair) for pair in set(pairs))
    for start in range(0, len(keys), MOST):
        yield tuple(keys[start : start + MOST])


def config_of(asset: str, keys: Iterable[str]) -> dict[str, Any]:
    """Return the run configuration that names the pairs beside the run's partition."""
    others = list(keys)[1:]
    return {"ops": {asset: {"config": {"pairs": others}}}} if others else {}


def pairs_of_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, asset: str
) -> list[str]:
    """Return the partition keys that a run of an asset takes; none when it names no pair."""
    config: Mapping[str, Any] = context.run.run_config
    for name in ("ops", asset, "config"):
        config = config.get(name) or {}
    return list(dict.fromkeys([*partitions_of_run(context), *config.get("pairs", ())]))


def partitions_of_run(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext,
) -> list[str]:
    """Return the partitions that Dagster knows a run by; none when it was started without."""
    own = context.has_partition_key_range or context.has_partition_key
    return list(context.partition_keys) if own else []


class Records:
    """Tells Dagster what was made of a run's pairs.

    Dagster records the partitions that it knows a run by; of the others it is told here, with the
    versions by which it finds out later whether they are stale.
    """

    def __init__(self, context: dg.AssetExecutionContext) -> None:
        self._context = context
        self._known = frozenset(partitions_of_run(context))

    def add(self, key: str, metadata: Mapping[str, Any], *, digest: str) -> None:
        """Record a pair.

        Args:
            key: its partition key.
            metadata: to be shown with it.
            digest: of what was made.
        """
        if key in self._known:
            self._context.add_asset_metadata(metadata, partition_key=key)
            return
        task, fingerprint = pair_of(key)
        self._context.log_event(
            dg.AssetMaterialization(
                self._context.asset_key,
                partition=dg.MultiPartitionKey({TASK: task, FINGERPRINT: fingerprint}),
                metadata=dict(metadata),
                tags={**self._versions, DATA_VERSION_TAG: digest[:_VERSION]},
            )
        )

    def pass_over(self, key: str) -> None:
        """Say of a cell that nobody observed that there is nothing in it.

        Dagster shows every partition that it knows a run by as made.
        """
        if key in self._known:
            empty = {"in_short": "an empty cell: no session has this pair", _COUNT: 0}
            self._context.add_asset_metadata(empty, partition_key=key)

    @cached_property
    def _versions(self) -> dict[str, str]:
        """What Dagster notes of what a partition was made by and from."""
        asset, step = self._context.asset_key, self._context.get_step_execution_context()
        node = self._context.job_def.asset_layer.get(asset)
        tags = {CODE_VERSION_TAG: node.code_version or self._context.run_id}
        for parent in node.parent_keys:
            found = step.maybe_fetch_and_get_input_asset_version_info(parent)
            version = found.data_version if found is not None else None
            pointer = found.storage_id if found is not None else None
            tags[get_input_data_version_tag(parent)] = (version or DEFAULT_DATA_VERSION).value
            tags[get_input_event_pointer_tag(parent)] = str(pointer or NULL_EVENT_POINTER)
        return tags

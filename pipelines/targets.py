"""From a stage and the options of ``backfill`` to the runs that cover it."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster import AssetKey, DagsterInstance
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph
from msgspec import Struct

from assets.partitions import PAIRS, SCORES, TASKS, WEEKS
from debrief.errors import InputError
from debrief.lake import Lake
from debrief.settings import Settings
from debrief.training.pairs import observed_pairs
from debrief.weeks import runs_of_weeks
from pipelines.ranges import Tags, pair_ranges, range_tags

ON_REQUEST = ("prompt_candidates",)
"""Stages that cost a lot of calls: taken when they are named, never because of what they follow."""


class Target(Struct, frozen=True, kw_only=True):
    """One run: some assets over one range of the partitions that they share."""

    assets: tuple[str, ...]
    first: str = ""
    last: str = ""

    @property
    def tags(self) -> Tags:
        """Return the run's tags; none for an asset without partitions."""
        return range_tags(self.first, self.last) if self.first else {}

    def describe(self) -> str:
        """Return the target in words."""
        where = f": {self.first} … {self.last}" if self.first else ""
        return f"{', '.join(self.assets)}{where}"


def targets(
    graph: BaseAssetGraph[Any],
    settings: Settings,
    instance: DagsterInstance,
    stage: str,
    weeks: tuple[str, ...],
    task: str,
    fingerprint: str,
    downstream: bool,
) -> Iterator[Target]:
    """Yield the runs that a backfill takes, in the order of the graph.

    Yielded one by one, since the pairs to take are known only after the runs before them.

    Raises:
        InputError: no partition answers to the options.
    """
    wanted = {AssetKey(stage)}
    if downstream:
        wanted |= dg.AssetSelection.assets(stage).downstream().resolve(graph)
        wanted -= {AssetKey(name) for name in ON_REQUEST if name != stage}
    lake = Lake(settings.lake)
    found = False
    for assets in _batches(graph, wanted):
        names = tuple(key.to_user_string() for key in assets)
        partitions = graph.get(assets[0]).partitions_def
        for first, last in _ranges(partitions, lake, instance, weeks, task, fingerprint):
            found = True
            yield Target(assets=names, first=first, last=last)
    if not found:
        raise InputError(
            stage, "has no partition that answers to these options", "See debrief run first."
        )


def _batches(
    graph: BaseAssetGraph[Any],
    wanted: set[AssetKey],
) -> Iterator[list[AssetKey]]:
    """Group neighbours in the graph's order that share their partitions."""
    batch: list[AssetKey] = []
    for key in graph.toposorted_asset_keys:
        if key not in wanted:
            continue
        if batch and graph.get(batch[-1]).partitions_def != graph.get(key).partitions_def:
            yield batch
            batch = []
        batch.append(key)
    if batch:
        yield batch


def _ranges(
    partitions: dg.PartitionsDefinition | None,
    lake: Lake,
    instance: DagsterInstance,
    weeks: tuple[str, ...],
    task: str,
    fingerprint: str,
) -> Iterator[tuple[str, str]]:
    if partitions is None:
        yield "", ""
    elif partitions == WEEKS:
        yield from runs_of_weeks(weeks or lake.partitions("raw_sessions"))
    elif partitions == SCORES:
        names = SCORES.get_partition_keys()
        yield names[0], names[-1]
    elif partitions == PAIRS:
        observed = observed_pairs(lake, weeks or None)
        chosen = [p for p in observed if task in ("", p[0]) and fingerprint in ("", p[1])]
        order = TASKS.get_partition_keys(dynamic_partitions_store=instance)
        yield from pair_ranges(chosen, order)

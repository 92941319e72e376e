"""From a stage and the options of ``backfill`` to the runs that cover what is due."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import dagster as dg
from dagster import AssetKey
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph
from msgspec import Struct

from assets.many_pairs import config_of, runs_over
from assets.partitions import PAIRS, SCORES, TASKS, WEEKS
from assets.scope import Scope
from debrief.training.pairs import observed_pairs
from debrief.weeks import runs_of_weeks
from pipelines.due import Due, Outlook, Why
from pipelines.ranges import Tags, pair_ranges, tags_of

ON_REQUEST = ("prompt_candidates",)
"""Stages that cost a lot of calls: taken when they are named, never because of what they follow."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What a backfill was asked for."""

    stage: str
    weeks: tuple[str, ...] = ()
    """Empty: every week that holds sessions."""
    scope: Scope = Scope()
    fingerprint: str = ""
    """For stages of pairs: only this pair of fingerprints."""
    downstream: bool = False


class Target(Struct, frozen=True, kw_only=True):
    """One run: some assets over one range of the partitions that they share."""

    assets: tuple[str, ...]
    first: str = ""
    last: str = ""
    why: dict[str, Why] = {}
    """Of each week."""
    pairs: tuple[str, ...] = ()
    """All that the run takes, of which its partition is the first."""

    @property
    def partitions(self) -> tuple[str, str]:
        """Return the first and the last one; empty for an asset without partitions."""
        return self.first, self.last

    @property
    def tags(self) -> Tags:
        """Return the run's tags; none for an asset without partitions."""
        return tags_of(self.partitions, self.pairs)

    @property
    def config(self) -> dict[str, Any]:
        """Return the run configuration that names its pairs; empty when its tags name all."""
        return config_of(self.assets[0], self.pairs)

    def describe(self) -> str:
        """Return the target in words."""
        where = f": {self.first} … {self.last}" if self.first else ""
        if len(self.pairs) > 1:
            where = f": {len(self.pairs)} pairs from {self.pairs[0]} to {self.pairs[-1]}"
        told = ", ".join(f"{n} {why}" for why, n in Counter(self.why.values()).most_common())
        return f"{', '.join(self.assets)}{where}{f' ({told})' if told else ''}"


class Batch(Struct, frozen=True, kw_only=True):
    """Stages with the same partitions, what is due of them, and the runs that it takes."""

    assets: tuple[str, ...]
    targets: tuple[Target, ...]
    current: tuple[str, ...] = ()
    """Weeks that are left out, being up to date."""


def batches(graph: BaseAssetGraph[Any], wanted: Wanted, outlook: Outlook) -> Iterator[Batch]:
    """Yield what a backfill takes, in the order of the graph.

    Yielded one by one, since what is due of a stage, and which pairs there are, is known only
    after the runs before it.
    """
    chosen = {AssetKey(wanted.stage)}
    if wanted.downstream:
        chosen |= dg.AssetSelection.assets(wanted.stage).downstream().resolve(graph)
        chosen -= {AssetKey(name) for name in ON_REQUEST if name != wanted.stage}
    weeks = _weeks(wanted, outlook)
    for keys in _neighbours(graph, chosen):
        names = tuple(key.to_user_string() for key in keys)
        yield _batch(names, graph.get(keys[0]).partitions_def, weeks, wanted, outlook)


def _batch(
    names: tuple[str, ...],
    partitions: dg.PartitionsDefinition | None,
    weeks: list[str],
    wanted: Wanted,
    outlook: Outlook,
) -> Batch:
    if partitions == WEEKS:
        due = outlook.due(names, weeks, force=wanted.scope.again)
        return Batch(assets=names, targets=tuple(_of_weeks(names, due)), current=due.current)
    ranges: list[tuple[str, str]] = []
    if partitions is None:
        ranges = [("", "")]
    elif partitions == SCORES:
        keys = SCORES.get_partition_keys()
        ranges = [(keys[0], keys[-1])]
    elif names == ("training_sets",):
        runs = runs_over(_pairs(weeks, wanted, outlook))
        targets = (Target(assets=names, first=run[0], last=run[0], pairs=run) for run in runs)
        return Batch(assets=names, targets=tuple(targets))
    elif partitions == PAIRS:
        order = TASKS.get_partition_keys(dynamic_partitions_store=outlook.instance)
        ranges = list(pair_ranges(_pairs(weeks, wanted, outlook), order))
    return Batch(
        assets=names,
        targets=tuple(Target(assets=names, first=first, last=last) for first, last in ranges),
    )


def _of_weeks(names: tuple[str, ...], due: Due) -> Iterator[Target]:
    for first, last in runs_of_weeks(due.weeks):
        why = {week: reason for week, reason in due.weeks.items() if first <= week <= last}
        yield Target(assets=names, first=first, last=last, why=why)


def _weeks(wanted: Wanted, outlook: Outlook) -> list[str]:
    """Return the weeks that are meant: those with a session that answers to the conditions.

    A condition can be looked at only once the sessions were read, so ``raw_sessions`` takes whole
    weeks of what is not read yet.
    """
    read = set(outlook.lake.partitions("raw_sessions"))
    known = read | set(outlook.scan.weeks()) if wanted.stage == "raw_sessions" else read
    weeks = sorted(known & set(wanted.weeks)) if wanted.weeks else sorted(known)
    if not wanted.scope.where:
        return weeks
    return [w for w in weeks if w not in read or wanted.scope.ids(outlook.lake, w)]


def _pairs(weeks: list[str], wanted: Wanted, outlook: Outlook) -> list[tuple[str, str]]:
    where = wanted.scope.where
    meant = {week: wanted.scope.ids(outlook.lake, week) for week in weeks} if where else {}
    return [
        pair
        for pair, members in observed_pairs(outlook.lake, weeks).items()
        if wanted.fingerprint in ("", pair[1])
        and where.of("task").takes({"task": [pair[0]]})
        and (not where or any(ids & meant[week] for week, ids in members.items()))
    ]


def _neighbours(graph: BaseAssetGraph[Any], chosen: set[AssetKey]) -> Iterator[list[AssetKey]]:
    """Group neighbours in the graph's order that share their partitions."""
    batch: list[AssetKey] = []
    for key in graph.toposorted_asset_keys:
        if key not in chosen:
            continue
        if batch and graph.get(batch[-1]).partitions_def != graph.get(key).partitions_def:
            yield batch
            batch = []
        batch.append(key)
    if batch:
        yield batch

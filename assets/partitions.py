"""The units of work: weeks, score names, and the observed pairs of task and fingerprint."""

from collections.abc import Iterable

import dagster as dg

from debrief.scoring.model import SCORE_NAMES
from debrief.weeks import FIRST_WEEK

WEEKS = dg.WeeklyPartitionsDefinition(start_date=FIRST_WEEK, day_offset=1, end_offset=1)
"""Monday to Sunday, UTC; the week under way is one of them."""

SCORES = dg.StaticPartitionsDefinition(list(SCORE_NAMES))

TASK, FINGERPRINT = "task", "fingerprint"
TASKS = dg.DynamicPartitionsDefinition(name=TASK)
FINGERPRINTS = dg.DynamicPartitionsDefinition(name=FINGERPRINT)
PAIRS = dg.MultiPartitionsDefinition({TASK: TASKS, FINGERPRINT: FINGERPRINTS})
"""The cross product has cells that nobody observed: they stay empty, and nothing runs for them."""

ONE_RUN = dg.BackfillPolicy.single_run()
"""A run costs more than a week of a cheap stage: one run takes a whole range."""


def all_of(asset: dg.AssetsDefinition | str) -> dg.AssetDep:
    """Return a dependency on every partition of an asset, whatever the own partitions are."""
    return dg.AssetDep(asset, partition_mapping=dg.AllPartitionMapping())


def add_pairs(instance: dg.DagsterInstance, pairs: Iterable[tuple[str, str]]) -> None:
    """Make observed (task, fingerprint) pairs partitions; those that are stay as they are."""
    observed = sorted(set(pairs))
    if observed:
        instance.add_dynamic_partitions(TASK, sorted({task for task, _ in observed}))
        instance.add_dynamic_partitions(FINGERPRINT, sorted({name for _, name in observed}))


def pair_of(key: str) -> tuple[str, str]:
    """Return (task, fingerprint) of a partition key of ``PAIRS``.

    Dagster writes such a key with its dimensions in the order of their names.
    """
    fingerprint, _, task = key.partition("|")
    return task, fingerprint

"""The units of work: weeks, and the observed pairs of task and fingerprint."""

from collections.abc import Iterable

import dagster as dg

from debrief.settings import load_settings

WEEKS = dg.WeeklyPartitionsDefinition(
    start_date=load_settings().first_week, day_offset=1, end_offset=1
)
"""Monday to Sunday, UTC; the week under way is one of them.

Dagster fixes the first when the code is loaded. All processes of one UI have it from the setting,
and commands take every week since 2022, so no older week is lost: the UI lists it when it starts
again.
"""

PAIRS = dg.DynamicPartitionsDefinition(name="pair")
"""``<task>.<prompt fingerprint>-<eval fingerprint>``; only observed pairs are partitions."""


def all_of(asset: dg.AssetsDefinition | str) -> dg.AssetDep:
    """Return a dependency on every partition of an asset, whatever the own partitions are."""
    return dg.AssetDep(asset, partition_mapping=dg.AllPartitionMapping())


def weekly_backfill_policy() -> dg.BackfillPolicy:
    """Return how Dagster cuts a backfill of weeks into runs.

    A run costs more than a week of a cheap stage, so by default one run takes them all. Where
    several workers take runs, ``DEBRIEF_WEEKS_A_RUN`` says how many weeks each run takes.
    """
    most = load_settings().weeks_a_run
    if most is None:
        return dg.BackfillPolicy.single_run()
    return dg.BackfillPolicy.multi_run(max_partitions_per_run=most)


def pair_key(task: str, fingerprint: str) -> str:
    """Return a pair's partition key.

    >>> pair_key("fix-parser", "0aaad855-7210ef0e")
    'fix-parser.0aaad855-7210ef0e'
    """
    return f"{task}.{fingerprint}"


def pair_of(key: str) -> tuple[str, str]:
    """Return (task, fingerprint) of a partition key; only the task may hold dots."""
    task, _, fingerprint = key.rpartition(".")
    return task, fingerprint


def add_pairs(instance: dg.DagsterInstance, pairs: Iterable[tuple[str, str]]) -> None:
    """Make observed (task, fingerprint) pairs partitions; those that are stay as they are."""
    keys = {pair_key(*pair) for pair in pairs}
    new = keys.difference(instance.get_dynamic_partitions("pair")) if keys else set()
    if new:
        instance.add_dynamic_partitions("pair", sorted(new))

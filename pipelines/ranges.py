"""From the partitions that are wanted to the ranges that Dagster's runs take."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)

from assets.handing_out import weeks_a_run
from assets.many_pairs import COUNT_TAG, pair_key
from debrief.settings import load_settings
from debrief.weeks import runs_of_weeks, week_after

Tags = dict[str, str]


def range_tags(first: str, last: str) -> Tags:
    """Return the tags of a run that takes every partition from ``first`` to ``last``."""
    return {ASSET_PARTITION_RANGE_START_TAG: first, ASSET_PARTITION_RANGE_END_TAG: last}


def tags_of(partitions: tuple[str, str], pairs: Sequence[str] = ()) -> Tags:
    """Return the tags of a run; none for an asset without partitions.

    Args:
        partitions: the first and the last one; empty for an asset without.
        pairs: all that the run takes, when it takes pairs.
    """
    tags = range_tags(*partitions) if partitions[0] else {}
    return {**tags, COUNT_TAG: str(len(pairs))} if len(pairs) > 1 else tags


def week_ranges(weeks: Iterable[str]) -> list[tuple[str, str]]:
    """Return the first and last week of each run that takes ``weeks``: neighbours together.

    No run takes more weeks than ``weeks_a_run`` says.
    """
    most = weeks_a_run(load_settings())
    found = []
    for first, last in runs_of_weeks(weeks):
        while (end := week_after(first, most - 1)) < last:
            found.append((first, end))
            first = week_after(end)
        found.append((first, last))
    return found


def pair_ranges(
    pairs: Collection[tuple[str, str]], tasks: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Cover observed pairs, and none but them, with few ranges of multi-partition keys.

    A range of two dimensions is a rectangle, so each is one fingerprint wide and runs over tasks
    that are neighbours in ``tasks``, Dagster's own order of them.
    """
    wanted: dict[str, set[str]] = defaultdict(set)
    for task, fingerprint in pairs:
        wanted[fingerprint].add(task)
    for fingerprint in sorted(wanted):
        for run in _neighbours(wanted[fingerprint], tasks):
            yield pair_key(run[0], fingerprint), pair_key(run[-1], fingerprint)


def _neighbours(wanted: set[str], order: Iterable[str]) -> Iterator[list[str]]:
    run: list[str] = []
    for name in order:
        if name in wanted:
            run.append(name)
        elif run:
            yield run
            run = []
    if run:
        yield run

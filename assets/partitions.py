"""The units of work: weeks, and the observed pairs of task and fingerprint."""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby

import dagster as dg

from debrief.keys import week_after, week_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.sessions.store import weeks_in
from debrief.settings import load_settings

LATE_WEEKS = 4
"""So many weeks before the one that ended may still get sessions: they are always listed."""


def weeks_of(*lakes: Lake) -> dg.WeeklyPartitionsDefinition:
    """Return the weeks that hold sessions, and the last ones.

    Monday to Sunday, UTC, to the week under way. Of earlier weeks, those count of which a lake has
    sessions, or a transcript was found for it.
    """
    late = week_after(week_of(datetime.now(UTC)), -LATE_WEEKS - 1)
    known = {week for lake in lakes for week in weeks_in(lake)}
    first = min({late, *known})
    empty, week = [], first
    while week < late:
        if week not in known:
            empty.append(datetime.fromisoformat(week).replace(tzinfo=UTC))
        week = week_after(week)
    return dg.WeeklyPartitionsDefinition(
        start_date=first, day_offset=1, end_offset=1, exclusions=empty or None
    )


def _lakes() -> list[Lake]:
    """Return the lakes that a run may work on."""
    settings = load_settings()
    return [Lake(url) for url in (settings.lake, *settings.lakes)]


WEEKS = weeks_of(*_lakes())
"""Dagster fixes the weeks when it loads the code. Runs and commands load it again; a code server
keeps them until the code location is reloaded."""


def not_listed(weeks: Iterable[str]) -> str:
    """Return a sentence about weeks that are no partitions; empty when there are none."""
    listed = set(WEEKS.get_partition_keys())
    others = sorted(week for week in set(weeks) - listed if week < max(listed))
    if not others:
        return ""
    span = others[0] if len(others) == 1 else f"{others[0]}..{others[-1]}"
    return (
        f"Transcripts of {counted(len(others), 'week')} ({span}) are new, and Dagster does not "
        "list these weeks yet. Reload the code location (Deployment → debrief → Reload), or run "
        f"`debrief run --week {span}`."
    )


def neighbours(order: Sequence[str], keys: Collection[str]) -> list[list[str]]:
    """Return keys in groups that are neighbours in an order: a run takes one range."""
    return [list(group) for is_taken, group in groupby(order, keys.__contains__) if is_taken]


PAIRS = dg.DynamicPartitionsDefinition(name="pair")
"""``<task>.<prompt fingerprint>-<eval fingerprint>``; only observed pairs are partitions."""


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

"""The units of work: weeks, and the observed pairs of task and fingerprint."""

from collections.abc import Iterable
from datetime import UTC, datetime

import dagster as dg

from debrief.keys import week_after, week_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.sessions.store import weeks_in
from debrief.settings import load_settings

_WEEKS_OF_A_NEW_LAKE = 4
"""Past weeks listed for a lake without sessions."""


def first_week(*lakes: Lake) -> str:
    """Return the first week of the lakes' sessions and of the transcripts found for them.

    Without either, return the week that began four weeks before the one under way.
    """
    now, weeks = week_of(datetime.now(UTC)), (week for lake in lakes for week in weeks_in(lake))
    return min(weeks, default=week_after(now, -_WEEKS_OF_A_NEW_LAKE))


def _lakes() -> list[Lake]:
    """Return the lakes that a run may work on."""
    settings = load_settings()
    return [Lake(url) for url in (settings.lake, *settings.lakes)]


WEEKS = dg.WeeklyPartitionsDefinition(start_date=first_week(*_lakes()), day_offset=1, end_offset=1)
"""Monday to Sunday, UTC, from the first week of all lakes to the week under way.

Dagster fixes the first week when it loads the code. Runs and commands load it again; a code server
keeps it until the code location is reloaded.
"""


def not_listed(weeks: Iterable[str]) -> str:
    """Return a sentence about weeks older than the first partition; empty when there are none."""
    first = str(WEEKS.get_first_partition_key())
    older = sorted({week for week in weeks if week < first})
    if not older:
        return ""
    return (
        f"There are transcripts of {counted(len(older), 'week')} from {older[0]} on, and Dagster's "
        f"partitions begin at {first}. To list them, reload the code location (Deployment → "
        f"debrief → Reload); to read them, run `debrief run --week {older[0]}..{older[-1]}`."
    )


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

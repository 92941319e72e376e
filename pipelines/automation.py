"""The weekly schedule and the sensors."""

import json
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec

from assets.partitions import LATE_WEEKS, WEEKS, not_listed
from debrief.keys import digest_of, week_after, week_of
from debrief.sessions.scanning import Scan, ScanEntry
from debrief.sessions.store import scan_into
from debrief.stages.due import unread
from pipelines.jobs import range_tags, whole_graph
from resources import Stages


def weeks_at(tick: datetime) -> tuple[str, str]:
    """Return the first and last week that a tick takes; the last is the one that ended.

    Args:
        tick: the time that it was scheduled for, however late it is evaluated.
    """
    ended = week_after(week_of(tick.astimezone(UTC)), -1)
    return week_after(ended, -LATE_WEEKS), ended


@dg.schedule(
    job=whole_graph,
    cron_schedule="0 3 * * 1",
    execution_timezone="UTC",
    description=(
        "Every Monday at three, UTC: the week that has just ended, and what arrived late of the "
        f"{LATE_WEEKS} weeks before it."
    ),
)
def weekly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    """Take the week before the one that the tick was scheduled in."""
    first, last = weeks_at(context.scheduled_execution_time)
    first = max(first, str(WEEKS.get_first_partition_key()))
    if last < first:
        return dg.SkipReason("No week of those that are listed has ended.")
    return dg.RunRequest(run_key=last, tags={**range_tags(first, last), "debrief/week": last})


QUIET_FOR = timedelta(minutes=15)
"""A session that was written to since is still under way, and starts nothing."""
EVERY_SECONDS = 300

following = dg.AutomationConditionSensorDefinition(
    "following",
    target=dg.AssetSelection.assets("training_sets", "fingerprint_leaderboard"),
    default_status=dg.DefaultSensorStatus.RUNNING,
    minimum_interval_seconds=60,
    description="Training sets and the leaderboard follow the sessions that they are made from.",
)

Marks = Mapping[str, str]
"""Of each week, the digest of what there was of it when it was last asked for."""
_LAST_RUN = "last run"
"""Beside the weeks: the key of the run that was asked for last."""


def settled(entries: Iterable[ScanEntry], now: datetime) -> list[ScanEntry]:
    """Return the transcripts that nobody has written to for a while.

    What bears a time to come, from a clock that was wrong, is taken as settled.
    """
    before, after = (now - QUIET_FOR).timestamp() * 1e9, now.timestamp() * 1e9
    return [
        entry
        for entry in entries
        if all(stamp.mtime_ns <= before or stamp.mtime_ns > after for stamp in entry.files)
    ]


def due_weeks(scan: Scan, unread: Collection[str], marks: Marks, now: datetime) -> dict[str, str]:
    """Return the weeks to ask for, each with the mark of what there is of it.

    Args:
        scan: what there is.
        unread: the weeks that the lake does not hold as they are now.
        marks: of the weeks that were asked for before: what has the same one is not asked for
            again, so that a transcript that can never be read does not start runs for ever.
        now: the time of the tick.
    """
    found: dict[str, str] = {}
    for week in scan.weeks():
        still = settled(scan.of_week(week), now)
        mark = digest_of(still)
        if still and marks.get(week) != mark and week in unread:
            found[week] = mark
    return found


@dg.sensor(
    job=whole_graph,
    minimum_interval_seconds=EVERY_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description=(
        "New and changed sessions, recorded ones included where the recorder is a source, between "
        "the ticks of the schedule: a run over the weeks they belong to, once nobody has written "
        "to them for a quarter of an hour."
    ),
)
def new_sessions(
    context: dg.SensorEvaluationContext, stages: Stages
) -> dg.SensorResult | dg.SkipReason:
    """Ask for the weeks whose sessions are not in the lake as they are now.

    What is due is worked out anew from the folders and the lake, so a tick that raised, and whose
    cursor is lost, loses nothing; and since the run's key is a digest of what it is asked for, it
    starts nothing twice.
    """
    tables, sources = stages.open_lake(), stages.options.sessions
    redactor = sources.redactor()
    scan = scan_into(tables, sources.places(), redactor, sources.servers())
    marks = marks_of(context.cursor)

    found = due_weeks(scan, unread(tables, scan, redactor), marks, datetime.now(UTC))
    listed = set(WEEKS.get_partition_keys())
    due = {week: mark for week, mark in found.items() if week in listed}
    if others := not_listed(found):
        context.log.warning(others)
        if not due:
            return dg.SkipReason(others)
    if not due:
        return dg.SkipReason("No session is new or changed, or those that are are under way.")
    cursor = {week: mark for week, mark in {**marks, **due}.items() if week in scan.weeks()}
    asked = request(due, marks.get(_LAST_RUN))
    cursor[_LAST_RUN] = str(asked.run_key)
    return dg.SensorResult(run_requests=[asked], cursor=json.dumps(cursor, sort_keys=True))


def request(due: Marks, last_run_key: str | None) -> dg.RunRequest:
    """Return the run over the range of some weeks.

    Its key is the same for the same sessions until it was launched. After another run it is
    another one: a record that is marked ready, draft and ready again is taken three times.
    """
    tags = range_tags(min(due), max(due))
    return dg.RunRequest(run_key=digest_of(last_run_key, sorted(due.items())), tags=tags)


def marks_of(cursor: str | None) -> dict[str, str]:
    """Read a cursor; one that cannot be read is as good as none."""
    try:
        return msgspec.json.decode(cursor or "{}", type=dict[str, str])
    except msgspec.DecodeError:
        return {}

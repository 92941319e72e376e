"""What starts the graph when something new is there, between the schedule's ticks."""

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta

import dagster as dg

from debrief.digests import digest_of
from debrief.lake import Lake
from debrief.redaction.redactor import Redactor
from debrief.sessions.scanning import Scan, ScanEntry
from debrief.sessions.store import SESSIONS_TABLE, read_from, scan_into
from pipelines.jobs import range_tags, whole_graph
from resources.lake import LakeResource
from resources.sessions import SessionStore

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


def due_weeks(
    scan: Scan, is_current: Callable[[str], bool], marks: Marks, now: datetime
) -> dict[str, str]:
    """Return the weeks to ask for, each with the mark of what there is of it.

    Args:
        scan: what there is.
        is_current: says whether the lake holds a week as it is now.
        marks: of the weeks that were asked for before: what has the same one is not asked for
            again, so that a transcript that can never be read does not start runs for ever.
        now: the time of the tick.
    """
    found: dict[str, str] = {}
    for week in scan.weeks():
        still = settled(scan.of_week(week), now)
        mark = digest_of(still)
        if still and marks.get(week) != mark and not is_current(week):
            found[week] = mark
    return found


@dg.sensor(
    job=whole_graph,
    minimum_interval_seconds=EVERY_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description=(
        "New and changed sessions, between the ticks of the schedule: a run over the weeks they "
        "belong to, once nobody has written to them for a quarter of an hour."
    ),
)
def new_sessions(
    context: dg.SensorEvaluationContext, lake: LakeResource, sessions: SessionStore
) -> dg.SensorResult | dg.SkipReason:
    """Ask for the weeks whose sessions are not in the lake as they are now.

    What is due is worked out anew from the folders and the lake, so a tick that raised, and whose
    cursor is lost, loses nothing; and since the run's key is a digest of what it is asked for, it
    starts nothing twice.
    """
    tables = lake.open()
    scan = scan_into(tables, sessions.places(), sessions.servers())
    marks = marks_of(context.cursor)
    current = _current(tables, scan, sessions.redactor())
    due = due_weeks(scan, current, marks, datetime.now(UTC))
    if not due:
        return dg.SkipReason("No session is new or changed, or those that are are under way.")
    cursor = {week: mark for week, mark in {**marks, **due}.items() if week in scan.weeks()}
    return dg.SensorResult(run_requests=[request(due)], cursor=json.dumps(cursor, sort_keys=True))


def request(due: Marks) -> dg.RunRequest:
    """Return the run over the range of some weeks; the same for the same sessions."""
    tags = range_tags(min(due), max(due))
    return dg.RunRequest(run_key=digest_of(sorted(due.items())), tags=tags)


def marks_of(cursor: str | None) -> dict[str, str]:
    """Read a cursor; one that cannot be read is as good as none."""
    try:
        stored = json.loads(cursor or "{}")
    except ValueError:
        return {}
    return {str(k): str(v) for k, v in stored.items()} if isinstance(stored, dict) else {}


def _current(lake: Lake, scan: Scan, redactor: Redactor) -> Callable[[str], bool]:
    def is_current(week: str) -> bool:
        stamp = lake.stamp(SESSIONS_TABLE, week)
        return stamp is not None and stamp.inputs == read_from(scan, week, redactor)

    return is_current

"""New records as they come: their weeks are taken without waiting for Monday."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import dagster as dg

from debrief.digests import digest_of
from debrief.errors import DebriefError
from debrief.recorder.source import RecordChanges, recorder_source
from debrief.settings import load_settings
from debrief.weeks import week_of
from pipelines.jobs import range_tags, whole_graph

ASKED_BY = {"debrief/asked_by": "new_records"}
"""On every run that the sensor asks for."""
MOST_PAGES = 20
"""Of changes that one tick looks at; the next goes on."""

_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]
_FORGOTTEN = timedelta(days=1)
"""After which a run that never ended holds up nothing any more."""


@dg.sensor(
    job=whole_graph,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description=(
        "Looks into the recorder's database (DATABASE_URL, else this machine's embedded one) for "
        "records that are new, or were marked ready or draft, and takes the weeks they belong "
        "to, as the weekly schedule does. Off until somebody turns it on."
    ),
)
def new_records(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Ask for one run over the weeks of all that changed since the last tick that asked.

    While such a run is under way, changes wait: they are taken together then. And while the
    database is away nothing is asked for and nothing is lost, as the cursor stays.
    """
    running = dg.RunsFilter(
        tags=ASKED_BY, statuses=_UNDER_WAY, created_after=datetime.now(UTC) - _FORGOTTEN
    )
    if context.instance.get_runs_count(running):
        return dg.SkipReason("The run over earlier records is under way.")
    try:
        changes = list(_changes(context.cursor))
    except DebriefError as error:
        return dg.SkipReason(str(error))
    records = [record for part in changes for record in part.records]
    cursor = changes[-1].cursor
    if not records:
        return dg.SensorResult(skip_reason="No record is new or changed.", cursor=cursor)
    weeks = sorted({week_of(record.started) for record in records})
    # With the cursor in it: a record that is marked ready, draft and ready again is taken thrice.
    content = digest_of(cursor, sorted((record.id, record.version) for record in records))
    request = dg.RunRequest(
        run_key=f"records-{content[:24]}",
        run_config={"resources": {"sessions": {"config": {"recorder": True}}}},
        tags={
            **ASKED_BY,
            **range_tags(weeks[0], weeks[-1]),
            "debrief/records": str(len(records)),
        },
    )
    return dg.SensorResult(run_requests=[request], cursor=cursor)


def _changes(cursor: str | None) -> Iterator[RecordChanges]:
    """Yield what changed since ``cursor``, at least one part."""
    with closing(recorder_source(load_settings())) as source:
        for _ in range(MOST_PAGES):
            changes = source.changes(cursor)
            yield changes
            if not changes.more:
                return
            cursor = changes.cursor

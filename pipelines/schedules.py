"""When the graph runs by itself."""

from datetime import UTC, datetime

import dagster as dg

from debrief.weeks import week_after, week_of
from pipelines.jobs import range_tags, whole_graph

LATE_WEEKS = 4
"""So many weeks before the one that ended are looked at for late arrivals."""


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
def weekly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Take the week before the one that the tick was scheduled in."""
    first, last = weeks_at(context.scheduled_execution_time)
    return dg.RunRequest(run_key=last, tags={**range_tags(first, last), "debrief/week": last})

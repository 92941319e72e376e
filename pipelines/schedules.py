"""When the graph runs by itself."""

from datetime import UTC, datetime

import dagster as dg

from debrief.weeks import week_after, week_of
from pipelines.whole_graph import whole_graph

LATE_WEEKS = 4
"""So many weeks before the one that ended are looked at for late arrivals."""


def weeks_at(tick: datetime) -> list[str]:
    """Return the weeks that a tick takes: the late ones, and last the one that ended.

    Args:
        tick: the time that it was scheduled for, however late it is evaluated.
    """
    ended = week_after(week_of(tick.astimezone(UTC)), -1)
    return [week_after(ended, -back) for back in range(LATE_WEEKS, -1, -1)]


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
    weeks = weeks_at(context.scheduled_execution_time)
    return dg.RunRequest(
        run_key=weeks[-1],
        run_config={"ops": {"find_sessions": {"config": {"weeks": weeks}}}},
        tags={"debrief/week": weeks[-1]},
    )

"""When the graph runs by itself."""

from datetime import UTC

import dagster as dg

from debrief.weeks import week_after, week_of
from pipelines.whole_graph import whole_graph


@dg.schedule(
    job=whole_graph,
    cron_schedule="0 3 * * 1",
    execution_timezone="UTC",
    description="Every Monday at three, UTC: the week that has just ended.",
)
def weekly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    """Take the week before the one that the tick falls into."""
    ended = week_after(week_of(context.scheduled_execution_time.astimezone(UTC)), -1)
    return dg.RunRequest(
        run_key=ended,
        run_config={"ops": {"find_sessions": {"config": {"weeks": [ended]}}}},
        tags={"debrief/week": ended},
    )

"""An asset that compares troubles before and after a line about them was added to a prompt file."""

from collections import Counter

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import markdown, preview
from assets.sessions import prompt_snapshots, raw_sessions
from assets.troubles import trouble_events, troubles
from assets.weekly import shown_at, stage
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import upstream
from debrief.stages.troubles import LINE_EFFECTS
from debrief.troubles.helped import effects_markdown
from debrief.troubles.model import ALL, EFFECTS
from resources import LakeResource, ScopeResource


@stage(
    group_name="troubles",
    code_version=versions.LINE_EFFECTS,
    deps=[troubles, *map(all_of, (raw_sessions, trouble_events, prompt_snapshots))],
)
def line_effects(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """For each line of the prompt files that is about a trouble: the share of sessions with the
    trouble before the line came in and with it, the difference with its 95 % interval, or that it
    is too early to tell."""
    run = StageRun(lake.open(), scope=scope.open())
    filled = LINE_EFFECTS.fill(run, ALL)
    rows = filled.rows
    log_progress(EFFECTS, f"{len(rows)} lines about troubles" + " (unchanged)" * filled.skipped)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(run.lake, EFFECTS, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            "outcomes": preview(
                ("outcome", "lines"), Counter(row.outcome for row in rows).most_common()
            ),
            "page": markdown(effects_markdown(rows)),
            **shown_at("/troubles"),
        },
    )

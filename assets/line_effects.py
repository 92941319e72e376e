"""Did a line help: troubles before and after a line about them came into the prompt files."""

from collections import Counter

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import markdown, preview
from assets.sessions import prompt_snapshots
from assets.troubles import trouble_events, troubles
from assets.weekly import StageRun, fill, stage, upstream
from debrief.keys import digest_of
from debrief.snapshots.model import SNAPSHOTS
from debrief.troubles import helped
from debrief.troubles.helped import effects_markdown, line_effects_in
from debrief.troubles.model import ALL, EFFECTS, EVENTS, TROUBLES, LineEffect


@stage(
    group_name="troubles",
    code_version=versions.LINE_EFFECTS,
    deps=[troubles, *map(all_of, (trouble_events, prompt_snapshots))],
)
def line_effects(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
    """For each line of the prompt files that is about a trouble: the share of sessions with the
    trouble before the line came in and with it, the difference with its 95 % interval, or that it
    is too early to tell."""
    run = StageRun(context)
    lake = run.lake
    made_from = [
        upstream(lake, *tables, week=week)
        for tables in ((EVENTS,), (SNAPSHOTS, "raw_sessions"))
        for week in lake.partitions(tables[0])
    ]
    inputs = digest_of(helped.VERSION, upstream(lake, TROUBLES, week=ALL), made_from)
    filled = fill(run, EFFECTS, ALL, LineEffect, inputs, lambda _: line_effects_in(lake))
    rows = filled.rows
    run.log_progress(f"{len(rows)} lines about troubles" + " (unchanged)" * filled.skipped)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(lake, EFFECTS, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            "outcomes": preview(
                ("outcome", "lines"), Counter(row.outcome for row in rows).most_common()
            ),
            "page": markdown(effects_markdown(rows)),
            "shown_at": dg.MetadataValue.url("/troubles"),
        },
    )

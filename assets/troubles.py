"""Troubles: what goes wrong in each session, and what recurs in a repository."""

from collections import Counter

import dagster as dg

from assets import versions
from assets.partitions import all_of
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import ShownWeeks, shown_at, stage, weekly_asset
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import upstream
from debrief.stages.troubles import ALL_TROUBLES, TROUBLE_EVENTS
from debrief.troubles.model import ALL, TROUBLES
from resources import LakeResource, ScopeResource


@weekly_asset(group_name="troubles", code_version=versions.TROUBLE_EVENTS, deps=[raw_sessions])
def trouble_events(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """Each time that something went wrong in a session of the week, with its words, what was done
    about it, and the tokens, money and minutes that this took. Found without a model."""
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(TROUBLE_EVENTS, run):
        kinds = Counter(row.kind for row in filled.rows)
        sessions = {row.session_id for row in filled.rows}
        weeks.show_filled(
            week,
            filled,
            f"{len(filled.rows)} events in {len(sessions)} sessions",
            {"kinds": preview(("kind", "events"), kinds.most_common()), "sessions": len(sessions)},
        )
    return weeks.result()


@stage(
    group_name="troubles",
    code_version=versions.TROUBLES,
    deps=[*map(all_of, (raw_sessions, trouble_events))],
)
def troubles(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """What recurs in a repository's sessions, and took something: how often, in which
    sessions, what it took, and what then worked. The costliest of each repository first."""
    run = StageRun(lake.open(), scope=scope.open())
    filled = ALL_TROUBLES.fill(run, ALL)
    rows = filled.rows
    log_progress(TROUBLES, f"{len(rows)} troubles" + " (unchanged)" * filled.skipped)
    repositories = Counter(row.repository for row in rows)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(run.lake, TROUBLES, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            "kinds": preview(("kind", "troubles"), Counter(row.kind for row in rows).most_common()),
            "repositories": len(repositories),
            **shown_at("/troubles"),
        },
    )

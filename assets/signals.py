"""Signals: what rules see in each session, without a model and without a verdict."""

from collections import Counter

import dagster as dg

from assets import versions
from assets.presentation import preview
from assets.sessions import raw_sessions
from assets.weekly import ShownWeeks, weekly_asset
from debrief.stages.run import StageRun
from debrief.stages.signals import SESSION_SIGNALS
from resources import LakeResource, ScopeResource


@weekly_asset(group_name="signals", code_version=versions.SIGNALS, deps=[raw_sessions])
def session_signals(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """What was asked and changed in each session of the week, which checks ran and how they
    ended, how the session ends, and what a person would want to look at; each with its
    evidence. Found without a model, and no verdict."""
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(SESSION_SIGNALS, run):
        work = Counter(row.work for row in filled.rows)
        urgent = sum(bool(row.events) for row in filled.rows)
        events = Counter(event.kind for row in filled.rows for event in row.events)
        weeks.show_filled(
            week,
            filled,
            f"{len(filled.rows)} sessions, {urgent} to look at",
            {
                "work": preview(("kind of work", "sessions"), work.most_common()),
                "events": preview(("event", "sessions"), events.most_common()),
            },
        )
    return weeks.result()

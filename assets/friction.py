"""Assets of friction: events of each session, what recurs, and whether a line helped."""

from collections import Counter
from functools import partial

import dagster as dg

from assets import versions
from assets.evaluations import session_scores
from assets.partitions import all_of
from assets.presentation import markdown, preview
from assets.sessions import prompt_snapshots, raw_sessions
from assets.weekly import MODEL_POOL, ShownWeeks, Spending, shown_at, stage, weekly_asset
from debrief.friction.advice import advice_markdown
from debrief.friction.line_effects import effects_markdown
from debrief.friction.schema import ALL, EFFECTS, RECURRING
from debrief.stages.friction import FRICTION_EVENTS, LINE_EFFECTS, RECURRING_FRICTION
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import upstream
from resources import EvaluatorResource, LakeResource, ScopeResource


@weekly_asset(
    group_name="friction",
    code_version=versions.FRICTION_EVENTS,
    deps=[raw_sessions, session_scores],
)
def friction_events(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """Each command that failed in a session of the week, with what then worked and the tokens,
    money and minutes that this took; and what the session's review noted."""
    run = StageRun(lake.open(), context.partition_keys, scope=scope.open())
    weeks = ShownWeeks(context, run.lake)
    for week, filled in weeks.filled(FRICTION_EVENTS, run):
        noted_by = Counter(row.by or "the rule" for row in filled.rows)
        sessions = {row.session_id for row in filled.rows}
        weeks.show_filled(
            week,
            filled,
            f"{len(filled.rows)} events in {len(sessions)} sessions",
            {"noted_by": preview(("by", "events"), noted_by.most_common())},
        )
    return weeks.result()


@stage(
    group_name="friction",
    code_version=versions.RECURRING_FRICTION,
    deps=[*map(all_of, (raw_sessions, session_scores, friction_events, prompt_snapshots))],
    pool=MODEL_POOL,
)
def recurring_friction(
    context: dg.AssetExecutionContext,
    lake: LakeResource,
    evaluator: EvaluatorResource,
    scope: ScopeResource,
) -> dg.MaterializeResult[None]:
    """What went wrong in two sessions of a repository or more, and the line that stops it: the
    same command that failed and what then worked, and what a model groups of reviews' notes."""
    by = partial(evaluator.open, context.run)
    run = StageRun(lake.open(), scope=scope.open(), evaluators=by)
    spending = Spending()
    filled = RECURRING_FRICTION.fill(run, ALL)
    rows = filled.rows
    log_progress(RECURRING, f"{len(rows)} recurring" + " (unchanged)" * filled.skipped)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(run.lake, RECURRING, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            **spending.since_shown(run.evaluators),
            "lines": markdown(advice_markdown(rows)),
            **shown_at("/friction"),
        },
    )


@stage(
    group_name="friction",
    code_version=versions.LINE_EFFECTS,
    deps=[
        recurring_friction,
        *map(all_of, (raw_sessions, session_scores, prompt_snapshots)),
    ],
)
def line_effects(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """For each line of the prompt files that is about a friction: the share of sessions with the
    friction before the line came in and with it, the difference with its 95 % interval, or that it
    is too early to tell."""
    run = StageRun(lake.open(), scope=scope.open())
    filled = LINE_EFFECTS.fill(run, ALL)
    rows = filled.rows
    log_progress(EFFECTS, f"{len(rows)} lines about friction" + " (unchanged)" * filled.skipped)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(upstream(run.lake, EFFECTS, week=ALL)[:16]),
        metadata={
            "dagster/row_count": len(rows),
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            "page": markdown(effects_markdown(rows)),
            **shown_at("/friction"),
        },
    )

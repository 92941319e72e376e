"""Reports: what a run did, which prompts, tools and models do better, and each week in one page."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import dagster as dg
from msgspec.structs import replace

from assets import versions
from assets.evaluations import judge_evaluations, langfuse_scores, session_scores
from assets.outcomes import labels
from assets.partitions import all_of
from assets.presentation import markdown
from assets.rubrics import rubric_evaluations, rubrics
from assets.sessions import prompt_snapshots, raw_sessions, session_metadata
from assets.signals import session_signals
from assets.training import FOLLOWS
from assets.weekly import OFF, ShownWeeks, shown_at, stage, weekly_asset
from debrief.lake import Lake
from debrief.snapshots.model import fingerprint_names
from debrief.stages.reports import (
    ALL,
    FINGERPRINT_LEADERBOARD,
    LEADERBOARD_PAGE,
    comparison_of,
    report_inputs,
    report_path,
)
from debrief.stages.run import StageRun
from debrief.training.leaderboard import leaderboard_markdown
from debrief.view import links
from debrief.weekly import DONE, Done, WeekDone, added_up, headline, page_of, report_of
from resources import LakeResource, ScopeResource, WebhookResource, account_of

_ROOT, _BACKFILL = "dagster/root_run_id", "dagster/backfill"


def done_with(instance: dg.DagsterInstance, run: dg.DagsterRun) -> list[Done]:
    """Return what was made by a run, the runs that it retries, and those of its backfill."""
    backfill, root = run.tags.get(_BACKFILL), account_of(run)
    runs = {run.run_id: run}
    for tag, value in ((_BACKFILL, backfill), (_ROOT, root if root != run.run_id else None)):
        if value:
            filters = dg.RunsFilter(tags={tag: value})
            runs |= {run.run_id: run for run in instance.get_runs(filters)}
    if (first := instance.get_run_by_id(root)) is not None:
        runs[root] = first
    parts: dict[tuple[str, str], list[Done]] = {}
    for run_id in runs:
        records = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_MATERIALIZATION)
        for part in done_in(record.dagster_event for record in records if record.dagster_event):
            parts.setdefault((part.stage, part.partition), []).append(part)
    return [
        replace(
            added_up(stage, each), partition=partition, rows=each[-1].rows, failed=each[-1].failed
        )
        for (stage, partition), each in parts.items()
    ]


def done_in(events: Iterable[dg.DagsterEvent]) -> Iterator[Done]:
    """Yield what was made of each partition, in the order of the events."""
    for event in events:
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            made = event.step_materialization_data.materialization
            if OFF not in made.metadata:
                yield _done(made)


def _done(materialization: dg.AssetMaterialization) -> Done:
    values = {name: value.value for name, value in materialization.metadata.items()}
    count = Counter({name: each for name, each in values.items() if isinstance(each, int)})
    cost, unknown = values.get("cost_usd"), None if count["calls"] else 0.0
    return Done(
        stage=materialization.asset_key.to_user_string(),
        partition=materialization.partition or "",
        rows=count["dagster/partition_row_count"] or count["dagster/row_count"],
        fresh=count["made_now"],
        **{name: count[name] for name in ("failed", "calls", "input_tokens", "output_tokens")},
        cost_usd=float(cost) if isinstance(cost, int | float) else unknown,
    )


@stage(
    group_name="reports",
    code_version=versions.LEADERBOARD,
    automation_condition=FOLLOWS,
    deps=[
        labels,
        *map(all_of, (raw_sessions, prompt_snapshots, session_metadata)),
        *map(all_of, (session_scores, session_signals)),
    ],
)
def fingerprint_leaderboard(
    context: dg.AssetExecutionContext, lake: LakeResource, scope: ScopeResource
) -> dg.MaterializeResult[None]:
    """Models, and prompts by tool and model: how many of their reviewed sessions are complete, with
    95 % intervals from five of them on; beside it what a session costs and takes.

    Compared are sessions on the same task, else in the same repository. Where that cannot be told,
    the page says how many more reviewed sessions would do.
    """
    run = StageRun(lake.open(), scope=scope.open())
    tables = run.lake
    rows = FINGERPRINT_LEADERBOARD.fill(run, ALL)
    page = leaderboard_markdown(comparison_of(run), fingerprint_names(tables))
    tables.write_bytes(LEADERBOARD_PAGE, page.encode())
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": len(rows.rows),
            **shown_at("/prompts"),
            "made_now": rows.fresh,
            "leaderboard": markdown(page),
        }
    )


@weekly_asset(
    group_name="reports",
    code_version=versions.WEEKLY_REPORT,
    deps=[
        *(raw_sessions, session_signals, prompt_snapshots, judge_evaluations),
        *(labels, session_scores, langfuse_scores),
        *(rubrics, rubric_evaluations, fingerprint_leaderboard),
    ],
)
def weekly_report(
    context: dg.AssetExecutionContext, lake: LakeResource, webhook: WebhookResource
) -> dg.MaterializeResult[None]:
    """One page a week: what the run did, what it cost, what failed and why, and what changed since
    the week before.

    Also `reports/<week>.md` in the lake. After a run that did nothing new, the page still says what
    the one before did. The headline of the run's last week is sent where messages go.
    """
    tables, weeks = lake.open(), ShownWeeks(context, lake.open())
    read = set(tables.partitions("raw_sessions"))
    last = max(read.intersection(context.partition_keys), default="")
    done = done_with(context.instance, context.run) if last else []
    for week in weeks:
        if week not in read:
            weeks.show_none(week)
            continue
        report = report_of(tables, week, done)
        # Stages without weeks do something in a run of any week, and are no reason to forget what
        # was done for this one.
        is_own = any(part.partition == week and (part.fresh or part.calls) for part in done)
        kept = report.done if is_own else _done_before(tables, week)
        path = links.page_path("weeks", week)
        page = page_of(replace(report, done=kept), links.address(path))
        if kept is None and (earlier := tables.read_bytes(report_path(week))) is not None:
            page = earlier.decode()  # it alone says what was done, and what that cost
        written = tables.write_bytes(report_path(week), page.encode())
        made_of = partial(report_inputs, tables, week)
        tables.write(DONE, week, [WeekDone(kept)], WeekDone, made_of)
        scheduled = SCHEDULE_TAG in context.run.tags
        if week == last and (report.did_something or scheduled):
            webhook.send(context.log, f"Debrief: {headline(report)}.", context.run_id)
        verdicts = report.now.verdicts
        figures = {
            "mean_overall_quality": report.now.quality,
            "judges_mean": report.now.judges_mean,
            "cost_usd_of_what_stands": report.now.cost_usd,
        }
        weeks.show(
            week,
            len(report.now.heads),
            headline(replace(report, done=kept)) + ("" if written.changed else " (page unchanged)"),
            {
                "page": markdown(page),
                **shown_at(path),
                "path": dg.MetadataValue.path(written.path),
                "failures": len(report.now.failures),
                "with_a_verdict": verdicts.known,
                "not_reviewed": verdicts.not_reviewed,
                **{key: round(value, 6) for key, value in figures.items() if value is not None},
            },
        )
    return weeks.result()


def _done_before(lake: Lake, week: str) -> tuple[Done, ...] | None:
    """Return what the last run that did anything did for a week; see ``WeekDone``."""
    kept = next(lake.read(DONE, week, WeekDone), None)
    if kept is None:
        return () if lake.read_bytes(report_path(week)) is None else None
    return kept.stages


SCHEDULE_TAG = "dagster/schedule_name"

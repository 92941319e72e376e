"""Reports: what a run did, which prompts, tools and models do better, and each week in one page."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial

import dagster as dg
from msgspec.structs import replace

from assets.presentation import metadata_of
from assets.stages import (
    OFF,
    PARTITION_ROWS,
    TABLE_ROWS,
    StageView,
    asset_of,
    fill,
    shown_at,
    weeks_of,
)
from assets.training import FOLLOWS
from debrief.lake import Lake
from debrief.stages.catalog import place_of
from debrief.stages.reports import (
    FINGERPRINT_LEADERBOARD,
    LEADERBOARD_PAGE,
    WEEKLY_REPORT,
    leaderboard_page,
    report_inputs,
    report_path,
)
from debrief.stages.shown import ShownPage
from debrief.view import links
from debrief.weekly import DONE, Done, WeekDone, added_up, headline, page_of, report_of
from resources import Stages, WebhookResource, account_of

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
        for (stage, partition), each in sorted(parts.items(), key=lambda part: place_of(part[0][0]))
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
        rows=count[PARTITION_ROWS] or count[TABLE_ROWS],
        fresh=count["made_now"],
        **{name: count[name] for name in ("failed", "calls", "input_tokens", "output_tokens")},
        cost_usd=float(cost) if isinstance(cost, int | float) else unknown,
    )


@asset_of(FINGERPRINT_LEADERBOARD, automation_condition=FOLLOWS)
def fingerprint_leaderboard(
    context: dg.AssetExecutionContext, stages: Stages
) -> dg.MaterializeResult[None]:
    """Compare models and prompts, and write the page of it."""
    run = stages.run(context)
    # First, so that a process that dies in between does not leave rows that say all is made.
    run.lake.write_bytes(LEADERBOARD_PAGE, leaderboard_page(run).encode())
    return fill(context, run, FINGERPRINT_LEADERBOARD)


@asset_of(WEEKLY_REPORT)
def weekly_report(
    context: dg.AssetExecutionContext, stages: Stages, webhook: WebhookResource
) -> dg.MaterializeResult[None]:
    """Write the pages of a run's weeks, and send the headline of the last one."""
    tables, weeks = stages.open_lake(), weeks_of(context)
    view = StageView(context, tables, WEEKLY_REPORT)
    read = set(tables.partitions("raw_sessions"))
    last = max(read.intersection(weeks), default="")
    done = done_with(context.instance, context.run) if last else []
    for week in weeks:
        if week not in read:
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
        view.show(
            week,
            len(report.now.heads),
            headline(replace(report, done=kept)) + ("" if written.changed else " (page unchanged)"),
            {
                **metadata_of({"page": ShownPage(page)}),
                **shown_at(path),
                "path": dg.MetadataValue.path(written.path),
                "failures": len(report.now.failures),
                "with_a_verdict": verdicts.known,
                "not_reviewed": verdicts.not_reviewed,
                **{key: round(value, 6) for key, value in figures.items() if value is not None},
            },
        )
    return view.result()


def _done_before(lake: Lake, week: str) -> tuple[Done, ...] | None:
    """Return what the last run that did anything did for a week; see ``WeekDone``."""
    kept = next(lake.read(DONE, week, WeekDone), None)
    if kept is None:
        return () if lake.read_bytes(report_path(week)) is None else None
    return kept.stages


SCHEDULE_TAG = "dagster/schedule_name"

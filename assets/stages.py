"""Make assets of the stages that the library declares."""

import functools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg

from assets.partitions import PAIRS, WEEKS, weekly_backfill_policy
from assets.presentation import Metadata, column_schema, metadata_of
from debrief.evaluators import Evaluators
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.models.usage import RunUsage
from debrief.settings import load_settings
from debrief.stages.catalog import all_stages
from debrief.stages.run import StageRun, log_progress
from debrief.stages.shown import Shown
from debrief.stages.stage import ALL, Filled, Stage, upstream
from debrief.view import links
from resources import Stages, explained

OWNERS = ["team:debrief"]
PARTITION_ROWS, TABLE_ROWS = "dagster/partition_row_count", "dagster/row_count"
OFF = "off"
"""Of the metadata of a stage that is off: why. Reports and progress leave it out."""
_FRESH = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(days=15), warn_window=timedelta(days=8)
)
"""The schedule is weekly: after eight days a run is missing."""
_PARTITIONS: dict[str, dict[str, Any]] = {
    "week": {"partitions_def": WEEKS, "freshness_policy": _FRESH},
    "pair": {"partitions_def": PAIRS, "backfill_policy": dg.BackfillPolicy.single_run()},
    "all": {},
}


def asset_of(stage: Stage[Any], **options: Any) -> Callable[..., dg.AssetsDefinition]:
    """Return ``dg.asset`` with all that a stage declares, for a function that makes its rows.

    Why it failed stands in a line of its own: Dagster's message begins with a stack trace.

    Args:
        stage: whose asset it is.
        options: of ``dg.asset``; they win.
    """

    def decorate(compute: Callable[..., Any]) -> dg.AssetsDefinition:
        @functools.wraps(compute)
        def computed(context: dg.AssetExecutionContext, *given: Any, **named: Any) -> Any:
            with explained(context.log):
                return compute(context, *given, **named)

        partitions = dict(_PARTITIONS[stage.partitions])
        if stage.partitions == "week":
            partitions["backfill_policy"] = weekly_backfill_policy()
        asset: Any = dg.asset(
            **{
                "name": stage.name,
                "description": stage.doc,
                "group_name": stage.group,
                "code_version": stage.code_version(),
                "deps": [_dependency(stage, read) for read in stage.read_stages],
                "pool": stage.pool or None,
                "kinds": set(stage.kinds),
                "owners": OWNERS,
                "metadata": {"dagster/column_schema": column_schema(stage.row_type)},
                **partitions,
                **options,
            }
        )
        return asset(computed)  # type: ignore[no-any-return]

    return decorate


def _dependency(stage: Stage[Any], read: Stage[Any]) -> dg.AssetDep:
    is_own_week = stage.partitions == read.partitions == "week"
    mapping = None if is_own_week or read.partitions == "all" else dg.AllPartitionMapping()
    return dg.AssetDep(read.name, partition_mapping=mapping)


def table_asset(stage: Stage[Any]) -> dg.AssetsDefinition:
    """Return the asset of a stage whose rows the library makes."""

    @asset_of(stage)
    def compute(context: dg.AssetExecutionContext, stages: Stages) -> dg.MaterializeResult[None]:
        return fill(context, stages.run(context, weeks_of(context)), stage)

    return compute


def table_assets(made_by_hand: Sequence[Any]) -> Iterator[dg.AssetsDefinition]:
    """Yield the assets of all stages but those that have one already."""
    known = {key.to_user_string() for asset in made_by_hand for key in asset.keys}
    for stage in all_stages():
        if stage.name not in known:
            yield table_asset(stage)


def weeks_of(context: dg.AssetExecutionContext) -> Sequence[str]:
    """Return the weeks that an asset's run takes; none of one without weeks."""
    has_weeks = context.has_partition_key or context.has_partition_key_range
    return list(context.partition_keys) if has_weeks else ()


def fill(
    context: dg.AssetExecutionContext, run: StageRun, stage: Stage[Any]
) -> dg.MaterializeResult[None]:
    """Fill a stage's table, partition by partition, and show each.

    A week without sessions has no rows, and a stage that is off leaves its rows as they are.
    """
    view = StageView(context, run.lake, stage)
    is_weekly = stage.partitions == "week"
    read = (week for week in run.weeks if run.lake.stamp("raw_sessions", week) is not None)
    for partition in read if is_weekly else (ALL,):
        if why := stage.why_off(run):
            stamp = run.lake.stamp(stage.table, partition)
            view.show_off(partition, stamp.rows if stamp else 0, why)
        else:
            filled = stage.fill(run, partition)
            view.show_filled(partition, filled, stage.shown(run, partition, filled.rows), run)
    return view.result()


class StageView:
    """What the UI and the terminal show of a stage's run.

    Args:
        context: of the asset.
        lake: that it fills.
        stage: of the asset.
    """

    def __init__(self, context: dg.AssetExecutionContext, lake: Lake, stage: Stage[Any]) -> None:
        self._context, self._lake, self._stage = context, lake, stage
        self._weeks = weeks_of(context)
        self._spending = Spending()
        self._of_all: Metadata = {}

    def show_filled(self, partition: str, filled: Filled[Any], shown: Shown, run: StageRun) -> None:
        """Show a partition that was filled, with what asking a model took."""
        unchanged = " (unchanged)" if filled.skipped else ""
        figures = {
            "made_now": filled.fresh,
            "up_to_date": filled.skipped,
            **metadata_of(shown.figures),
            **(self._spending.since_shown(run.evaluators) if self._stage.calls_models else {}),
        }
        self.show(partition, len(filled.rows), shown.summary + unchanged, figures)

    def show(self, partition: str, rows: int, summary: str, metadata: Metadata) -> None:
        """Show a partition that has so many rows; ``summary`` says it in a few words."""
        if OFF not in metadata:
            where = ""
            if partition in self._weeks:
                number = self._weeks.index(partition) + 1
                where = f"{partition} ({number} of {len(self._weeks)}): "
            log_progress(self._stage.name, f"{where}{summary}")
        is_week = self._stage.partitions == "week"
        page = self._stage.page or links.sessions_path(**({"week": partition} if is_week else {}))
        count = PARTITION_ROWS if is_week else TABLE_ROWS
        shown = {"in_short": summary, **shown_at(page), "made_now": 0, count: rows, **metadata}
        self._add(partition, shown)

    def show_off(self, partition: str, rows: int, why: str) -> None:
        """Show why a stage is off, and how many rows it has from before."""
        self.show(partition, rows, why, {OFF: why})

    def _add(self, partition: str, metadata: Metadata) -> None:
        if self._stage.partitions == "week":
            self._context.add_asset_metadata(metadata, partition_key=partition)
        else:
            self._of_all = metadata

    def result(self) -> dg.MaterializeResult[None]:
        """Return what the asset returns: its rows' digest is the version of its data."""
        table = self._stage.table
        partitions = self._weeks or self._lake.partitions(table)
        digest = digest_of([upstream(self._lake, table, week=each) for each in partitions])
        if self._weeks:
            span = f"{self._weeks[0]} to {self._weeks[-1]}"
            self._context.log.info(f"{self._stage.name}: {len(self._weeks)} weeks, {span}")
        return dg.MaterializeResult(
            data_version=dg.DataVersion(digest[:16]), metadata=dict(self._of_all) or None
        )


def shown_at(path: str) -> Metadata:
    """Return the link to a page; empty where settings name no address of pages.

    ``debrief ui`` sets ``DEBRIEF_VIEW_URL``. Plain ``dagster dev`` has no pages.
    """
    if "view_url" not in load_settings().model_fields_set:
        return {}
    return {"shown_at": dg.MetadataValue.url(links.address(path))}


class Spending:
    """What asking models took, from one time that it is shown to the next."""

    def __init__(self) -> None:
        self._before = RunUsage()

    def since_shown(self, evaluators: Evaluators) -> Metadata:
        """Return what was spent since this was called last; empty without a model."""
        if evaluators.models is None:
            return {}
        spent, self._before = evaluators.spent - self._before, evaluators.spent
        cost = spent.usage.cost_usd
        return {
            "calls": spent.calls,
            "requests_sent": spent.sent,
            "answers_recalled": spent.recalled,
            "input_tokens": spent.usage.input_tokens,
            "input_tokens_cached_by_provider": spent.usage.cache_read_tokens,
            "output_tokens": spent.usage.output_tokens,
            **({"cost_usd": cost} if cost is not None else {"cost": "not known"}),
            **({"dry_run": True} if evaluators.dry_run else {}),
        }

"""What weekly assets share: their definition, the metadata they show, and their checks."""

import functools
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import dagster as dg

from assets.partitions import WEEKS, weekly_backfill_policy
from debrief.evaluators import Evaluators
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.models.usage import RunUsage
from debrief.settings import load_settings
from debrief.stages.run import StageRun, log_progress
from debrief.stages.table import Filled, Row, TableStage, upstream
from debrief.view import links
from resources import LakeResource, explained

MODEL_POOL = "language_model"
"""Of every stage that asks a model: with a limit of 1, no two runs ask the same at once."""
OWNERS, KINDS = ["team:debrief"], {"python", "jsonl"}
COUNT = "dagster/partition_row_count"
OFF = "off"
"""Of the metadata of a stage that is off: why. Reports and progress leave it out."""
_FRESH = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(days=15), warn_window=timedelta(days=8)
)
"""The schedule is weekly: after eight days a run is missing."""

Metadata = Mapping[str, Any]


def stage(**options: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return ``dg.asset`` with what every asset has; its docstring is what the UI says of it.

    Why it failed stands in a line of its own: Dagster's message begins with a stack trace.
    """

    def decorate(compute: Callable[..., Any]) -> dg.AssetsDefinition:
        @functools.wraps(compute)
        def computed(context: dg.AssetExecutionContext, *given: Any, **named: Any) -> Any:
            with explained(context.log):
                return compute(context, *given, **named)

        asset: Any = dg.asset(**{"owners": OWNERS, "kinds": KINDS, **options})
        return asset(computed)  # type: ignore[no-any-return]

    return decorate


def weekly_asset(**options: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return ``stage`` with what every asset of weeks has."""
    return stage(
        partitions_def=WEEKS,
        backfill_policy=weekly_backfill_policy(),
        freshness_policy=_FRESH,
        **options,
    )


def shown_at(path: str) -> Metadata:
    """Return the link to a page; empty where settings name no address of pages.

    ``debrief ui`` sets ``DEBRIEF_VIEW_URL``. Plain ``dagster dev`` has no pages.
    """
    if "view_url" not in load_settings().model_fields_set:
        return {}
    return {"shown_at": dg.MetadataValue.url(links.address(path))}


_PAGES = {
    "prompt_snapshots": "/prompts",
    "extracted_rubrics": "/rubrics",
    "rubric_evaluations": "/rubrics",
}
"""Where a stage's rows are shown, if not in the list of the week's sessions."""


class ShownWeeks:
    """The weeks of an asset's run, and what the UI shows of each.

    Args:
        context: of the asset.
        lake: that it fills.
    """

    def __init__(self, context: dg.AssetExecutionContext, lake: Lake) -> None:
        self._context, self._lake = context, lake
        self._weeks = list(context.partition_keys)
        self._name = context.asset_key.to_user_string()

    def filled(self, stage: TableStage[Row], run: StageRun) -> Iterator[tuple[str, Filled[Row]]]:
        """Fill a stage's table week by week; yield each week with its rows, to be shown.

        A week without sessions has none, and a stage that is off leaves its rows as they are.
        """
        for week in self._weeks:
            if self._lake.stamp("raw_sessions", week) is None:
                self.show_none(week)
            elif why := stage.why_off(run):
                stamp = self._lake.stamp(stage.table, week)
                self.show(week, stamp.rows if stamp else 0, why, {OFF: why})
            else:
                yield week, stage.fill(run, week)

    def show_filled(self, week: str, filled: Filled[Row], summary: str, metadata: Metadata) -> None:
        """Show a week that was filled: ``summary`` is the week in a few words."""
        unchanged = " (unchanged)" if filled.skipped else ""
        known = {"made_now": filled.fresh, "up_to_date": filled.skipped}
        self.show(week, len(filled.rows), summary + unchanged, {**known, **metadata})

    def show(self, week: str, rows: int, summary: str, metadata: Metadata) -> None:
        """Show a week that has so many rows."""
        if OFF not in metadata:
            number = self._weeks.index(week) + 1
            log_progress(self._name, f"{week} ({number} of {len(self._weeks)}): {summary}")
        page = shown_at(_PAGES.get(self._name) or links.sessions_path(week=week))
        first = {"in_short": summary, **page, "made_now": 0, COUNT: rows}
        self._context.add_asset_metadata({**first, **metadata}, partition_key=week)

    def show_none(self, week: str) -> None:
        """Show a week without sessions."""
        self._context.add_asset_metadata({COUNT: 0}, partition_key=week)

    def result(self) -> dg.MaterializeResult[None]:
        """Return what the asset returns: its rows' digest is the version of its data."""
        weeks, table = self._weeks, self._name
        self._context.log.info(f"{table}: {len(weeks)} weeks, {weeks[0]} to {weeks[-1]}")
        digest = digest_of([upstream(self._lake, table, week=week) for week in weeks])
        return dg.MaterializeResult(data_version=dg.DataVersion(digest[:16]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._weeks)


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


def check(
    asset: dg.AssetsDefinition, keys: Callable[[Lake], list[str]] | None = None, **options: Any
) -> Callable[[Callable[[Lake, list[str]], dg.AssetCheckResult]], dg.AssetChecksDefinition]:
    """Return a decorator for a check of the partitions of its run, or of all when it runs alone.

    What it decorates gets the lake and the keys; its docstring is what the UI says of it.

    Args:
        asset: that is checked.
        keys: of all its partitions; those of its table by default.
        options: of the check.
    """
    all_keys = keys or (lambda lake: lake.partitions(asset.key.to_user_string()))

    def decorate(
        look: Callable[[Lake, list[str]], dg.AssetCheckResult],
    ) -> dg.AssetChecksDefinition:
        def checked(
            context: dg.AssetCheckExecutionContext, lake: LakeResource
        ) -> dg.AssetCheckResult:
            with explained(context.log):
                opened = lake.open()
                has_keys = context.has_partition_key_range or context.has_partition_key
                return look(opened, list(context.partition_keys) if has_keys else all_keys(opened))

        checked.__name__, checked.__doc__ = look.__name__, look.__doc__
        return dg.asset_check(asset=asset, **options)(checked)

    return decorate

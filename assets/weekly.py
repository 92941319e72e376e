"""What weekly stages have in common: a week's rows are made once, and shown in the UI.

The weekly report is an asset of ``assets/reports.py``.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import cache, cached_property, partial
from types import SimpleNamespace
from typing import Any, Generic, TypeVar

import dagster as dg
import msgspec

from assets.partitions import WEEKS, weekly_backfill_policy
from debrief.errors import DebriefError, ModelError
from debrief.evaluators import Evaluators
from debrief.keys import digest_of
from debrief.lake import Lake
from debrief.models.usage import RunUsage
from debrief.redaction.redactor import Redactor
from debrief.view import links
from resources import LangfuseResource, Scope, SessionStore, WebhookResource

PROGRESS = "debrief.progress"
"""Logger of single steps forward. Not the run's own log: Dagster stores each of its lines as an
event, which costs more than a week of a cheap stage does."""
MODEL_POOL = "language_model"
"""Of every stage that asks a model: with a limit of 1, no two runs ask the same at once."""
OWNERS, KINDS = ["team:debrief"], {"python", "jsonl"}
COUNT = "dagster/partition_row_count"
OFF = "off"
"""Of the metadata of a stage that is off: why. Reports and progress leave it out."""
RESOURCES = {"lake", "sessions", "evaluator", "langfuse", "scope", "webhook"}
_FRESH = dg.FreshnessPolicy.time_window(
    fail_window=timedelta(days=15), warn_window=timedelta(days=8)
)
"""The schedule is weekly: after eight days a run is missing."""

Row = TypeVar("Row", bound=msgspec.Struct)
T = TypeVar("T")
Inputs = Callable[["StageRun", str], str]
Metadata = Mapping[str, Any]
Off = Callable[["StageRun"], str]
"""Why a stage is off; empty where it is on."""


class StageRun:
    """A stage's run: its resources, opened when first used, and what it logs.

    Args:
        context: of the asset, or a substitute before a run is launched.
    """

    def __init__(self, context: Any) -> None:
        self.context = context
        self.name = context.asset_key.to_user_string()
        self.sessions: SessionStore = context.resources.sessions
        self.langfuse: LangfuseResource = context.resources.langfuse
        self.webhook: WebhookResource = context.resources.webhook
        self._spent = RunUsage()
        self._made: dict[str, Any] = {}

    @cached_property
    def lake(self) -> Lake:
        """The lake."""
        lake: Lake = self.context.resources.lake.open()
        return lake

    @cached_property
    def scope(self) -> Scope:
        """Which sessions are taken, and whether again."""
        scope: Scope = self.context.resources.scope.open()
        return scope

    @cached_property
    def evaluators(self) -> Evaluators:
        """Who judges, scores and mines."""
        open_evaluators = self.context.resources.evaluator.open
        evaluators: Evaluators = open_evaluators(self.context.run)
        return evaluators

    @cached_property
    def redactor(self) -> Redactor:
        """Takes secrets out, with this machine's key."""
        return self.sessions.redactor()

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Return what ``make`` returned the first time that the run asked for ``name``."""
        if name not in self._made:
            self._made[name] = make()
        made: T = self._made[name]
        return made

    def log_progress(self, message: str) -> None:
        """Show a step forward on the terminal of whoever started the run."""
        logging.getLogger(PROGRESS).info("%s %s", self.name, message)

    def spending(self) -> Metadata:
        """Return what asking models took since this was called last; empty without a model."""
        if self.evaluators.models is None:
            return {}
        now = self.evaluators.spent
        spent, self._spent = now - self._spent, now
        cost = spent.usage.cost_usd
        return {
            "calls": spent.calls,
            "requests_sent": spent.sent,
            "answers_recalled": spent.recalled,
            "input_tokens": spent.usage.input_tokens,
            "input_tokens_cached_by_provider": spent.usage.cache_read_tokens,
            "output_tokens": spent.usage.output_tokens,
            **({"cost_usd": cost} if cost is not None else {"cost": "not known"}),
            **({"dry_run": True} if self.evaluators.dry_run else {}),
        }


class Filled(msgspec.Struct, Generic[Row], frozen=True):
    """A partition after its stage ran."""

    rows: list[Row]
    skipped: bool
    """Nothing that the rows are made from has changed, so that none was made."""
    fresh: int = 0
    """Rows that were not there before, or not so."""


def upstream(lake: Lake, *tables: str, week: str) -> str:
    """Return a digest of what the named tables hold of a week."""
    return digest_of([getattr(lake.stamp(table, week), "digest", None) for table in tables])


def fill(
    run: StageRun,
    table: str,
    partition: str,
    row_type: type[Row],
    inputs: str,
    make: Callable[[list[Row]], Iterable[Row]],
    is_final: Callable[[Sequence[Row]], bool] = lambda rows: True,
    *,
    calls_models: bool = False,
    whole: bool = True,
) -> Filled[Row]:
    """Fill one partition of a table, unless it was filled from the same inputs before.

    Args:
        run: of the stage.
        table: its name.
        partition: its key.
        row_type: its rows.
        inputs: digest of all that the rows depend on.
        make: gets the stored rows and returns the new ones.
        is_final: says of the new rows whether the next run may skip them.
        calls_models: in a dry run, rows are made and thrown away, to count the calls.
        whole: False when rows of only some sessions are made: the partition is then not final.
    """
    lake = run.lake
    stamp = lake.stamp(table, partition)
    stored = list(lake.read(table, partition, row_type))
    current = stamp is not None and stamp.inputs == inputs
    if current and not run.scope.force:
        return Filled(stored, skipped=True)
    if calls_models and run.evaluators.dry_run:
        with suppress(ModelError):
            deque(make(stored) if run.evaluators.models is not None else (), maxlen=0)
        return Filled(stored, skipped=False)
    rows = list(make(stored))
    final = inputs if (current or whole) and is_final(rows) else ""
    written = lake.write(table, partition, rows, row_type, lambda: final)
    return Filled(rows, skipped=False, fresh=_fresh(stored, rows) if written.changed else 0)


def _fresh(stored: Iterable[msgspec.Struct], rows: Iterable[msgspec.Struct]) -> int:
    encode = msgspec.msgpack.Encoder().encode
    before = {encode(row) for row in stored}
    return sum(encode(row) not in before for row in rows)


def stage(**options: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return ``dg.asset`` with what every stage has; its docstring is what the UI says of it."""
    common = {"owners": OWNERS, "kinds": KINDS, "required_resource_keys": RESOURCES}
    decorator: Any = dg.asset(**{**common, **options})
    return decorator  # type: ignore[no-any-return]


def weekly_asset(**options: Any) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Return ``stage`` with what every weekly one has.

    What it decorates gets the stage's run and a week, and returns the week's metadata, or None
    for a week without sessions. ``summary`` in the metadata is the week in a few words.
    """

    def decorate(one_week: Callable[[StageRun, str], Metadata | None]) -> dg.AssetsDefinition:
        def compute(context: dg.AssetExecutionContext) -> dg.MaterializeResult[None]:
            return _each_week(context, one_week)

        compute.__doc__ = one_week.__doc__
        return stage(
            name=one_week.__name__,
            partitions_def=WEEKS,
            backfill_policy=weekly_backfill_policy(),
            freshness_policy=_FRESH,
            **options,
        )(compute)

    return decorate


_PAGES = {
    "prompt_snapshots": "/prompts",
    "extracted_rubrics": "/rubrics",
    "rubric_evaluations": "/rubrics",
}
"""Where a stage's rows are shown, if not in the list of the week's sessions."""


def _each_week(
    context: dg.AssetExecutionContext, one_week: Callable[[StageRun, str], Metadata | None]
) -> dg.MaterializeResult[None]:
    run = StageRun(context)
    weeks = list(context.partition_keys)
    count = 0
    try:
        for number, week in enumerate(weeks, 1):
            found = one_week(run, week)
            if found is None:
                context.add_asset_metadata({COUNT: 0}, partition_key=week)
                continue
            metadata = {"made_now": 0, **found}
            rows = metadata[COUNT]
            summary = metadata.pop("summary", "") or f"{rows} rows"
            if OFF not in metadata:
                run.log_progress(f"{week} ({number} of {len(weeks)}): {summary}")
            path = _PAGES.get(run.name) or links.sessions_path(week=week)
            # Dagster's UI is below the pages' own address, whatever port that has.
            shown_at = dg.MetadataValue.url(path)
            context.add_asset_metadata(
                {"in_short": summary, "shown_at": shown_at, **metadata}, partition_key=week
            )
            count += rows
    except DebriefError as error:
        # Dagster's own message begins with a stack trace.
        context.log.error(str(error))
        raise
    context.log.info(f"{run.name}: {count} rows in {len(weeks)} weeks, {weeks[0]} to {weeks[-1]}")
    digest = digest_of([upstream(run.lake, run.name, week=week) for week in weeks])
    return dg.MaterializeResult(data_version=dg.DataVersion(digest[:16]))


_STAGES: dict[str, tuple[type[Any], Inputs, Callable[..., Iterable[Any]], bool, Off]] = {}
"""The rows, inputs and making of each weekly stage by its table, whether it calls models, and
whether it is off."""


def stage_run_of(resources: Mapping[str, Any], weeks: Sequence[str]) -> StageRun:
    """Return what stages work with before a run is launched, over weeks that were read already."""
    context = SimpleNamespace(
        resources=SimpleNamespace(**resources),
        asset_key=dg.AssetKey("raw_sessions"),
        run=None,
        partition_keys=weeks,
    )
    return StageRun(context)


def model_stages() -> list[str]:
    """Return the weekly stages that ask a model."""
    return [table for table, (*_, calls_models, _off) in _STAGES.items() if calls_models]


def due_weeks_of(
    run: StageRun, table: str, weeks: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Iterable[Any]]]]:
    """Yield the weeks that a stage would make, each with what makes its rows."""
    row_type, inputs, make, *_ = _STAGES[table]
    for week in weeks:
        if run.lake.stamp("raw_sessions", week) is None:
            continue
        stamp = run.lake.stamp(table, week)
        if run.scope.force or stamp is None or stamp.inputs != inputs(run, week):
            stored = list(run.lake.read(table, week, row_type))
            yield week, partial(make, run, week, stored)


def all_up_to_date(resources: Mapping[str, Any], weeks: Sequence[str]) -> bool:
    """Return whether no weekly stage has anything to do, by the stamps of its partitions.

    Args:
        resources: of the run that would be launched, by name.
        weeks: that it would take, all of them read already.
    """
    run = stage_run_of(resources, weeks)
    # Nothing is written here, and stages ask for the same stamps again and again.
    run.lake.stamp = cache(run.lake.stamp)  # type: ignore[method-assign]
    for table, (row_type, inputs, make, calls_models, off) in _STAGES.items():
        for week in weeks if not off(run) else ():
            stamp = run.lake.stamp(table, week)
            if stamp is not None and stamp.inputs == inputs(run, week):
                continue
            if stamp is None or stamp.inputs or calls_models:
                return False
            stored = list(run.lake.read(table, week, row_type))
            if list(make(run, week, stored)) != stored:
                return False
    return True


def weekly_stage(
    row_type: type[Row],
    *,
    inputs: Inputs,
    make: Callable[[StageRun, str, list[Row]], Iterable[Row]],
    is_final: Callable[[StageRun, str, Sequence[Row]], bool] = lambda run, week, rows: True,
    calls_models: bool = False,
    scoped: bool = False,
    off: Off = lambda run: "",
    **options: Any,
) -> Callable[[Callable[[StageRun, str, Filled[Row]], Metadata]], dg.AssetsDefinition]:
    """Return a decorator for a weekly stage that fills the table of its own name.

    What it decorates returns the metadata of a week that was filled; count, cost and whether the
    week was up to date are added.

    Args:
        row_type: the table's rows.
        inputs: digest of all that a week's rows depend on.
        make: makes a week's rows, given those stored.
        is_final: says of a week's rows whether the next run may skip them.
        calls_models: the stage asks the evaluators.
        scoped: it takes only the sessions of the run's scope.
        off: says why it is off; then its rows stay as they are.
        options: of the asset.
    """

    def decorate(
        show: Callable[[StageRun, str, Filled[Row]], Metadata],
    ) -> dg.AssetsDefinition:
        def one_week(run: StageRun, week: str) -> Metadata | None:
            if run.lake.stamp("raw_sessions", week) is None:
                return None
            if reason := off(run):
                stamp = run.lake.stamp(run.name, week)
                return {COUNT: stamp.rows if stamp else 0, OFF: reason, "summary": reason}
            filled = fill(
                run,
                run.name,
                week,
                row_type,
                inputs(run, week),
                lambda stored: make(run, week, stored),
                lambda rows: is_final(run, week, rows),
                calls_models=calls_models,
                whole=not (scoped and run.scope.where),
            )
            metadata = dict(show(run, week, filled))
            summary = metadata.pop("summary", f"{len(filled.rows)} rows")
            return {
                COUNT: len(filled.rows),
                "made_now": filled.fresh,
                "up_to_date": filled.skipped,
                **metadata,
                **(run.spending() if calls_models else {}),
                "summary": summary + (" (unchanged)" if filled.skipped else ""),
            }

        one_week.__name__, one_week.__doc__ = show.__name__, show.__doc__
        _STAGES[show.__name__] = row_type, inputs, make, calls_models, off
        return weekly_asset(**(options | ({"pool": MODEL_POOL} if calls_models else {})))(one_week)

    return decorate


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
        def checked(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
            lake: Lake = context.resources.lake.open()
            has_keys = context.has_partition_key_range or context.has_partition_key
            return look(lake, list(context.partition_keys) if has_keys else all_keys(lake))

        checked.__name__, checked.__doc__ = look.__name__, look.__doc__
        return dg.asset_check(asset=asset, required_resource_keys={"lake"}, **options)(checked)

    return decorate

"""A backfill from the command line: plan, estimate, consent, and real runs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from debrief.cli.console import console
from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.settings import Settings
from pipelines.options import Choice

if TYPE_CHECKING:
    import dagster as dg

    from pipelines.due import Outlook
    from pipelines.estimates import Estimate
    from pipelines.targets import Batch, Target, Wanted


class Consent(Struct, frozen=True, kw_only=True):
    """How far a backfill may go by itself."""

    yes: bool = False
    """Costs were agreed to beforehand."""
    dry_run: bool = False
    """Say what would be done and what it would take, and do nothing."""
    max_cost_usd: float | None = None
    """No new call once so much was spent, over all runs of the backfill."""


def run_backfill(choice: Choice, wanted: Wanted, consent: Consent) -> None:
    """Bring one stage up to date over the partitions that are wanted.

    Raises:
        InputError: there is no such stage, or no partition that answers to the options.
        DebriefError: a run failed.
        ConfigurationError: it costs something and nobody agreed.
    """
    if consent.max_cost_usd is not None and not consent.max_cost_usd >= 0:
        raise InputError(
            f"--max-cost-usd {consent.max_cost_usd}", "is no limit", "Give a number from 0 up."
        )
    settings = choice.settle()
    import dagster as dg

    from assets.handing_out import in_queue
    from assets.partitions import PAIRS, add_pairs, pair_of
    from pipelines.definitions import defs
    from pipelines.instance import open_instance
    from pipelines.progress import show_progress
    from pipelines.recovery import settle_at_start
    from pipelines.targets import batches
    from pipelines.unmet import nothing_to_take

    graph = defs.resolve_asset_graph()
    names = sorted(key.to_user_string() for key in graph.materializable_asset_keys)
    if wanted.stage not in names:
        raise InputError(f"--stage {wanted.stage}", "is no stage", _meant(wanted.stage, names))
    of_pairs = graph.get(dg.AssetKey(wanted.stage)).partitions_def == PAIRS
    if wanted.fingerprint and not of_pairs and not wanted.downstream:
        raise InputError(
            f"--fingerprint {wanted.fingerprint}",
            f"is that of a training set, and {wanted.stage} has none",
            "--where fingerprint=… takes the sessions of a prompt.",
        )
    show_progress()
    with open_instance(settings) as instance:
        settle_at_start(instance)
        outlook = _outlook(settings, choice, instance, wanted, consent)
        spent = _Spent(consent.max_cost_usd)
        for number, batch in enumerate(batches(graph, wanted, outlook)):
            if wanted.stage in batch.assets and not batch.targets and not batch.current:
                raise nothing_to_take(wanted, outlook)
            _tell(batch)
            agreed = _agree(batch, wanted, outlook, consent)
            if consent.dry_run:
                if wanted.downstream:
                    console().print("What follows downstream is known once this was done.")
                return
            if not agreed and not number:
                raise ConfigurationError(
                    "backfill", "it may cost money and nobody agreed", "Add --yes."
                )
            if not agreed:
                raise ConfigurationError(
                    ", ".join(batch.assets), "were left out: nobody agreed", "Add --yes."
                )
            add_pairs(instance, (pair_of(key) for each in batch.targets for key in each.pairs))
            if in_queue(settings):
                hand_out(batch.targets, wanted, instance, spent)
                continue
            for target in batch.targets:
                for each in _ranges(target):
                    _take(target, each, wanted, instance, spent)
        spent.tell()


def _meant(stage: str, names: list[str]) -> str:
    known = f"There are: {', '.join(names)}."
    close = get_close_matches(stage, names, n=1)
    return f"Did you mean {close[0]}? {known}" if close else known


class _Spent:
    """What the runs of a backfill came to so far, and what is left of its limit."""

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._calls = self._failed = self._fresh = 0
        self._usd = 0.0
        self._all_known = True

    def add(self, events: Iterable[dg.DagsterEvent]) -> None:
        from assets.doings import done_in
        from debrief.weekly.model import added_up

        parts = list(done_in(events))
        done = added_up("", parts)
        self._calls += done.calls
        self._failed += done.failed
        self._fresh += done.fresh
        self._usd += sum(part.cost_usd or 0.0 for part in parts)
        self._all_known = self._all_known and done.cost_usd is not None

    def config(self, runs: int = 1) -> dict[str, Any]:
        """Return the run configuration that bounds the next run, or each of so many."""
        if self._limit is None:
            return {}
        left = max(0.0, self._limit - self._usd) / runs
        return {"resources": {"evaluator": {"config": {"max_cost_usd": left}}}}

    def tell(self) -> None:
        cost = f"${self._usd:.4f}" if self._all_known else "cost not known"
        asked = f", {self._calls} calls, {cost}" if self._calls else ""
        failed = f", {self._failed} failed: the next run tries them again" if self._failed else ""
        console().print(f"Done: {self._fresh} rows new or changed{asked}{failed}.")


def _outlook(
    settings: Settings,
    choice: Choice,
    instance: dg.DagsterInstance,
    wanted: Wanted,
    consent: Consent,
) -> Outlook:
    from debrief.evaluators import make_evaluators
    from debrief.lake import Lake
    from debrief.redaction.redactor import Redactor, key_of
    from debrief.sessions.sources import Scan
    from debrief.sessions.store import scan_into
    from pipelines.due import Outlook
    from resources.sessions import SessionStore

    lake, store = Lake(settings.lake), SessionStore()
    scan = Scan()
    if wanted.stage == "raw_sessions":
        scan = scan_into(lake, store.places(), server=store.server())
    offline = not choice.model and settings.offline
    return Outlook(
        lake=lake,
        instance=instance,
        evaluators=make_evaluators(
            settings,
            offline=offline,
            model=choice.model,
            max_cost_usd=consent.max_cost_usd,
            dry_run=consent.dry_run,
        ),
        scan=scan,
        redactor=Redactor(key_of(settings)),
    )


def _tell(batch: Batch) -> None:
    screen = console()
    for target in batch.targets:
        screen.print(target.describe(), soft_wrap=True)
    if batch.current:
        weeks = f"{len(batch.current)} weeks are" if len(batch.current) > 1 else "1 week is"
        again = "" if batch.targets else "; --force makes it again"
        screen.print(f"{', '.join(batch.assets)}: {weeks} up to date{again}", soft_wrap=True)


def _agree(batch: Batch, wanted: Wanted, outlook: Outlook, consent: Consent) -> bool:
    """Tell what the batch is likely to take, and return whether that is agreed to."""
    from pipelines.estimates import estimates

    found = list(estimates(batch.targets, wanted, outlook))
    if not found:
        return True
    screen = console()
    for estimate in found:
        screen.print(f"  estimate · {estimate.describe()}", soft_wrap=True)
    if not any(_costs(estimate) for estimate in found):
        return True
    known = [estimate.cost_usd for estimate in found if estimate.cost_usd is not None]
    limit = consent.max_cost_usd
    if limit is not None and sum(known) > limit:
        screen.print(f"  more than --max-cost-usd {limit:g}: what is over it is left for later")
    return consent.yes or consent.dry_run or _asked("Go on?")


def _costs(estimate: Estimate) -> bool:
    return estimate.cost_usd is None or estimate.cost_usd > 0


def _asked(question: str) -> bool:
    import typer

    ask: Callable[[str], bool] = typer.confirm
    return sys.stdin.isatty() and ask(question)


def hand_out(
    targets: Sequence[Target], wanted: Wanted, instance: dg.DagsterInstance, spent: _Spent
) -> None:
    """Let the workers that take from the queue do what is due, a few weeks a run.

    Raises:
        DebriefError: runs failed; what they had finished stays.
    """
    from pipelines.distribution import carry_out, describe, pieces_of
    from pipelines.launching import QUIET
    from pipelines.ranges import tags_of

    tags = {**wanted.scope.tags, "debrief/backfill": wanted.stage}
    ranges = [(target, each) for target in targets for each in _ranges(target)]
    bound = spent.config(len(ranges) or 1)
    pieces = [
        piece
        for target, each in ranges
        for piece in pieces_of(
            "",
            [each],
            {**tags, **tags_of(each, target.pairs)},
            {**QUIET, **bound, **target.config},
            assets=target.assets,
        )
    ]

    def add(run: dg.DagsterRun) -> None:
        records = instance.all_logs(run.run_id)
        spent.add(record.dagster_event for record in records if record.dagster_event)

    failed = carry_out(instance, pieces, ended=add)
    if failed:
        raise DebriefError(describe(failed), "failed", "The whole story is in these runs.")


def _ranges(target: Target) -> list[tuple[str, str]]:
    """Return the first and last partition of each run that it takes."""
    from pipelines.ranges import week_ranges

    return week_ranges(target.why) if target.why else [target.partitions]


def _take(
    target: Target,
    partitions: tuple[str, str],
    wanted: Wanted,
    instance: dg.DagsterInstance,
    spent: _Spent,
) -> None:
    import dagster as dg

    from pipelines.definitions import defs
    from pipelines.launching import QUIET, raise_on_failure
    from pipelines.ranges import tags_of

    tags = tags_of(partitions, target.pairs)
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(name) for name in target.assets],
        tags={**tags, **wanted.scope.tags, "debrief/backfill": wanted.stage},
        run_config={**QUIET, **spent.config(), **target.config},
        raise_on_error=False,
    )
    spent.add(result.all_events)
    raise_on_failure(result)

"""A backfill from the command line: what is due, what it would cost, consent, and real runs."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from debrief.cli.shared import console
from debrief.errors import ConfigurationError, InputError
from debrief.lake import Lake
from debrief.weeks import week_of
from pipelines.launching import (
    RunOutcome,
    carry_out,
    end_dead_runs,
    ranges,
    weeks_with_sessions,
)
from pipelines.options import RunOptions, run_config
from resources.scope import Where

if TYPE_CHECKING:
    import dagster as dg

    from debrief.weekly.model import Done

READING = "raw_sessions"
CANDIDATES = "prompt_candidates"
ASKING = (
    "judge_evaluations",
    "session_scores",
    "extracted_rubrics",
    "rubrics",
    "rubric_evaluations",
    CANDIDATES,
)
"""Stages that ask language models."""
_SHOWN = 10
"""Values that an error offers."""


class BackfillRequest(Struct, frozen=True, kw_only=True):
    """What a backfill is to make."""

    stage: str
    weeks: tuple[str, ...] = ()
    """Empty: every week that holds sessions."""
    where: Where = Where()
    force: bool = False
    fingerprint: str = ""
    """For stages of pairs: only this pair of fingerprints."""
    downstream: bool = False


class Consent(Struct, frozen=True, kw_only=True):
    """How far a backfill may go by itself."""

    yes: bool = False
    """Costs were agreed to beforehand."""
    dry_run: bool = False
    """Show what would be done and what it would cost, and do nothing."""
    max_cost_usd: float | None = None
    """No new call once so much was spent, over all runs of the backfill."""


def run_backfill(options: RunOptions, request: BackfillRequest, consent: Consent) -> None:
    """Bring one stage up to date, and with ``downstream`` what follows it.

    Raises:
        InputError: there is no such stage, or no partition that the options fit.
        DebriefError: a run failed.
        ConfigurationError: it costs something and nobody agreed.
    """
    if consent.max_cost_usd is not None and not consent.max_cost_usd >= 0:
        raise InputError(
            f"--max-cost-usd {consent.max_cost_usd}", "is no limit", "Give a number from 0 up."
        )
    settings = options.settings()
    resources = options.resources(settings)
    resources["scope"] = {
        "where": [str(request.where)] * bool(request.where),
        "force": request.force,
    }
    from pipelines.instance import open_instance
    from pipelines.progress import show_progress

    weekly, of_pairs = _selection(request)
    lake = Lake(settings.lake)
    known = set(lake.partitions(READING))
    if request.stage == READING:
        known |= set(weeks_with_sessions(lake, resources))
    weeks = _weeks(lake, request, known)
    pairs = _pairs(lake, request, weeks) if of_pairs else set()
    if not (weeks if weekly else pairs):
        raise _nothing_to_take(lake, request, sorted(known))
    show_progress()
    spent = _Spent(consent.max_cost_usd)
    plan = _Plan(weekly, ranges(sorted(known), set(weeks)))
    with open_instance(settings) as instance:
        end_dead_runs(instance)
        if not _agree(plan, of_pairs, request, consent, resources):
            return
        for part in plan.partitions:
            outcome = carry_out(instance, "", part, spent.config(resources), plan.assets)
            spent.add(outcome)
            outcome.check()
        if of_pairs:
            pairs = _pairs(lake, request, weeks)
            _add(instance, pairs)
            for first, last in ranges(instance.get_dynamic_partitions("pair"), pairs):
                config = spent.config(resources)
                outcome = carry_out(instance, "", (first, last), config, of_pairs)
                spent.add(outcome)
                outcome.check()
    spent.show()


class _Plan(Struct, frozen=True):
    """The weekly part of a backfill: stages, and the first and last week of each run."""

    assets: list[str]
    weeks: list[tuple[str, str]]

    @property
    def partitions(self) -> list[tuple[str, str] | None]:
        """Return the partitions of each run."""
        if not self.assets:
            return []
        return [None] if set(self.assets) <= _UNPARTITIONED else list(self.weeks)


_UNPARTITIONED = {"rubrics", "judge_agreement", "fingerprint_leaderboard"}


def _selection(request: BackfillRequest) -> tuple[list[str], list[str]]:
    """Return the stages of weeks or without partitions, and those of pairs.

    Raises:
        InputError: there is no such stage, or it has no fingerprints.
    """
    import dagster as dg

    from assets.partitions import PAIRS
    from pipelines.definitions import defs

    graph = defs.resolve_asset_graph()
    names = sorted(key.to_user_string() for key in graph.materializable_asset_keys)
    if request.stage not in names:
        known = f"There are: {', '.join(names)}."
        close = get_close_matches(request.stage, names, n=1)
        move = f"Did you mean {close[0]}? {known}" if close else known
        raise InputError(f"--stage {request.stage}", "is no stage", move)
    chosen = {dg.AssetKey(request.stage)}
    if request.downstream:
        chosen |= dg.AssetSelection.assets(request.stage).downstream().resolve(graph)
        chosen -= {dg.AssetKey(CANDIDATES)} - {dg.AssetKey(request.stage)}
    parts: tuple[list[str], list[str]] = ([], [])
    for key in graph.toposorted_asset_keys:
        if key in chosen:
            parts[graph.get(key).partitions_def == PAIRS].append(key.to_user_string())
    if request.fingerprint and not parts[1]:
        raise InputError(
            f"--fingerprint {request.fingerprint}",
            f"is that of a training set, and {request.stage} has none",
            "--where fingerprint=… takes the sessions of a prompt.",
        )
    return parts


def _weeks(lake: Lake, request: BackfillRequest, known: set[str]) -> list[str]:
    """Return the weeks to take: those with a session that the conditions hold for.

    Conditions are known to hold only once sessions were read, so ``raw_sessions`` takes all weeks
    that are not read yet.
    """
    from resources.scope import Scope

    weeks = sorted(known & set(request.weeks)) if request.weeks else sorted(known)
    if not request.where:
        return weeks
    read, scope = set(lake.partitions(READING)), Scope(request.where)
    return [week for week in weeks if week not in read or scope.ids(lake, week)]


def _pairs(lake: Lake, request: BackfillRequest, weeks: Sequence[str]) -> set[str]:
    from assets.partitions import pair_key
    from debrief.training.pairs import observed_pairs
    from resources.scope import Scope

    scope = Scope(request.where)
    ids = {week: scope.ids(lake, week) for week in weeks} if request.where else {}
    return {
        pair_key(task, fingerprint)
        for (task, fingerprint), members in observed_pairs(lake, weeks).items()
        if request.fingerprint in ("", fingerprint)
        and request.where.of("task").takes({"task": [task]})
        and (not request.where or any(found & ids[week] for week, found in members.items()))
    }


def _add(instance: dg.DagsterInstance, keys: set[str]) -> None:
    from assets.partitions import add_pairs, pair_of

    add_pairs(instance, map(pair_of, keys))


def _agree(
    plan: _Plan,
    of_pairs: list[str],
    request: BackfillRequest,
    consent: Consent,
    resources: dict[str, dict[str, Any]],
) -> bool:
    """Show what is due and what it would cost; return whether to go on.

    Raises:
        ConfigurationError: it may cost money and nobody agreed.
    """
    screen = console()
    offline = resources["evaluator"]["offline"]
    costs = request.downstream or CANDIDATES in of_pairs
    for stage in (*plan.assets, *of_pairs):
        if stage not in ASKING or stage == CANDIDATES:
            screen.print(f"{stage}: what is up to date is skipped")
            continue
        due, done = _rehearse(plan, stage, resources)
        screen.print(f"{stage}: {due}", soft_wrap=True)
        if offline:
            continue
        screen.print(f"  estimate · {_describe(stage, done)}", soft_wrap=True)
        costs = costs or done.cost_usd is None or done.cost_usd > 0
        limit = consent.max_cost_usd
        if limit is not None and (done.cost_usd or 0) > limit:
            screen.print(f"  more than --max-cost-usd {limit:g}: what is over it is left for later")
    if request.downstream:
        screen.print("What follows a stage that is due is known once that was done.")
    if consent.dry_run:
        return False
    if costs and not offline and not consent.yes and not _confirmed("Go on?"):
        raise ConfigurationError("backfill", "it may cost money and nobody agreed", "Add --yes.")
    return True


def _rehearse(plan: _Plan, stage: str, resources: dict[str, dict[str, Any]]) -> tuple[str, Done]:
    """Return what is due of a stage, and what it would take, by a dry run of it."""
    import dagster as dg

    from assets.run_summary import done_in
    from debrief.weekly.model import added_up
    from pipelines.progress import muted

    dry = {**resources, "evaluator": {**resources["evaluator"], "dry_run": True}}
    alone = _Plan([stage], plan.weeks)
    events: list[dg.DagsterEvent] = []
    with dg.DagsterInstance.ephemeral() as instance, muted():
        for part in alone.partitions:
            outcome = carry_out(instance, "", part, run_config(dry), [stage])
            outcome.check()
            events += outcome.events
    done = added_up(stage, done_in(events))
    current = [
        bool(event.step_materialization_data.materialization.metadata["up_to_date"].value)
        for event in events
        if event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION
        and "up_to_date" in event.step_materialization_data.materialization.metadata
    ]
    if alone.partitions == [None]:
        return "all score names", done
    span = f"{plan.weeks[0][0]} … {plan.weeks[-1][1]}"
    return f"{span}: {current.count(False)} weeks to make, {sum(current)} up to date", done


def _describe(stage: str, done: Done) -> str:
    cost = "cost not known" if done.cost_usd is None else f"${done.cost_usd:.4f}"
    tokens = f"{done.input_tokens:,} + {done.output_tokens:,} tokens"
    return f"{stage}: {done.calls:,} calls, {tokens}, {cost}"


def _confirmed(question: str) -> bool:
    import typer

    ask: Callable[[str], bool] = typer.confirm
    return sys.stdin.isatty() and ask(question)


class _Spent:
    """What the runs of a backfill came to so far, and what is left of its limit."""

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._parts: list[Done] = []

    def add(self, outcome: RunOutcome) -> None:
        """Count a run."""
        from assets.run_summary import done_in

        self._parts += done_in(outcome.events)

    def config(self, resources: dict[str, dict[str, Any]]) -> dict[str, Any]:
        """Return the configuration that bounds the next run."""
        if self._limit is None:
            return run_config(resources)
        left = max(0.0, self._limit - sum(part.cost_usd or 0.0 for part in self._parts))
        evaluator = {**resources["evaluator"], "max_cost_usd": left}
        return run_config({**resources, "evaluator": evaluator})

    def show(self) -> None:
        """Print it."""
        from debrief.weekly.model import added_up

        done = added_up("", self._parts)
        cost = "cost not known" if done.cost_usd is None else f"${done.cost_usd:.4f}"
        asked = f", {done.calls} calls, {cost}" if done.calls else ""
        failed = f", {done.failed} failed: the next run tries them again" if done.failed else ""
        console().print(f"Done: {done.fresh} rows new or changed{asked}{failed}.")


def _nothing_to_take(lake: Lake, request: BackfillRequest, known: list[str]) -> InputError:
    """Return the error that names what no session fits, and what there is instead."""
    from debrief.training.pairs import observed_pairs

    if not known:
        move = "debrief sources lists what there is to read, debrief run reads it."
        return InputError(lake.url, "holds no session", move)
    weeks = [week for week in known if week in request.weeks or not request.weeks]
    if not weeks:
        first, last = request.weeks[0], request.weeks[-1]
        to_come = first > week_of(datetime.now(UTC))
        return InputError(
            f"--weeks {first if first == last else f'{first}..{last}'}",
            "is still to come" if to_come else "holds no session that was read",
            f"There are sessions in {known[0]}..{known[-1]}.",
        )
    if request.where:
        return _nothing_fits(lake, request.where, weeks)
    if request.fingerprint:
        there = Counter(pair[1] for pair in observed_pairs(lake, weeks))
        return InputError(
            f"--fingerprint {request.fingerprint}",
            "is that of no training set",
            f"There are: {_listed(there)}.",
        )
    return InputError(
        request.stage, "has no partition yet", "debrief run makes what comes before it."
    )


def _nothing_fits(lake: Lake, where: Where, weeks: Iterable[str]) -> InputError:
    from resources.scope import facts_of

    facts = [each for week in weeks for _, each in facts_of(lake, week)]
    for condition in where.conditions:
        alone = Where((condition,))
        if any(alone.takes(each) for each in facts):
            continue
        field = condition[0]
        there = Counter(value for each in facts for value in each.get(field, ()))
        move = f"There are: {_listed(there)}." if there else f"Of no session a {field} is known."
        return InputError(f"--where {alone}", "fits no session", move)
    return InputError(
        f"--where {where}", "fits no session: each has some, and none has all", "Leave one out."
    )


def _listed(there: Counter[str]) -> str:
    values = [value or "(none)" for value, _ in there.most_common(_SHOWN)]
    more = len(there) - len(values)
    return ", ".join(values) + (f" and {more} more" if more > 0 else "")

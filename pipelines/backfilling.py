"""``debrief backfill``: list what is due, show its cost, ask for consent, launch Dagster's runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any

import dagster as dg
import typer
from msgspec import Struct
from msgspec.structs import replace

from assets.partitions import PAIRS, add_pairs, pair_key, pair_of
from assets.reports import done_in
from debrief.cli.asking import agree, estimate_of, print_notes
from debrief.cli.shared import console
from debrief.cli.summary import EVALUATED, check_answers
from debrief.conditions import Where
from debrief.conversion import open_lake
from debrief.errors import InputError
from debrief.keys import week_of
from debrief.lake import Lake
from debrief.markdown import counted
from debrief.rubrics.model import RUBRICS
from debrief.scope import Scope, values_by_session
from debrief.settings import Settings
from debrief.stages.configuration import EvaluatorChoice
from debrief.stages.rehearsal import SCORES, Rehearsal, added_up, rehearse
from debrief.summary import content_of
from debrief.training.manifest import current_pairs
from debrief.training.optimisation import OptimiserOptions
from debrief.weekly import Done
from debrief.weekly import added_up as added_up_done
from pipelines.definitions import defs
from pipelines.instance import end_dead_runs, open_instance
from pipelines.launching import (
    carry_out,
    configured_run,
    counting,
    weeks_with_sessions,
)
from pipelines.options import RunOptions, left_of, limits_of, run_config
from pipelines.progress import shown_progress
from pipelines.queueing import runs_over

READING = "raw_sessions"
CANDIDATES = "prompt_candidates"
_SHOWN = 10
"""Values that an error offers."""


class Backfill(Struct, frozen=True, kw_only=True):
    """What a backfill is to make, and how far it may go by itself."""

    stage: str
    weeks: tuple[str, ...]
    """Empty: every week that holds sessions."""
    where: Where
    force: bool
    fingerprint: str
    """For stages of pairs: only this pair of fingerprints; empty: all of them."""
    downstream: bool
    yes: bool
    """Costs were agreed to beforehand."""
    dry_run: bool
    """Show what would be done and what it would cost, and do nothing."""


Resources = dict[str, dict[str, Any]]


def run_backfill(options: RunOptions, request: Backfill) -> None:
    """Bring one stage up to date, and with ``downstream`` what follows it.

    Raises:
        InputError: there is no such stage, or no partition that the options fit.
        DebriefError: a run failed, or every question of a stage.
        ConfigurationError: it costs something and nobody agreed.
    """
    settings = options.apply()
    resources = options.resources(settings)
    resources["scope"] = {
        "where": [str(request.where)] * bool(request.where),
        "force": request.force,
    }
    stages, of_pairs = _selection(request)
    lake = open_lake(settings.lake)
    known = set(lake.partitions(READING))
    if request.stage == READING:
        known |= set(weeks_with_sessions(lake, resources))
    weeks = _weeks(lake, request, known)
    if not (weeks if stages else _pairs(lake, request, weeks)):
        raise _nothing_to_take(lake, request, sorted(known))
    parts: list[Done] = []
    with open_instance(settings) as instance:
        end_dead_runs(instance)
        limited = _agree(lake, request, stages, of_pairs, weeks, resources, settings)
        resources["evaluator"] |= limits_of(limited)

        def make(assets: Sequence[str], partitions: Sequence[str]) -> None:
            config = run_config({**resources, "evaluator": left_of(resources["evaluator"], parts)})
            if CANDIDATES in assets:  # It was named, and its cost agreed to.
                config["ops"] = {CANDIDATES: {"config": {"trials": OptimiserOptions().trials}}}
            outcome = carry_out(instance, "", partitions, config, assets)
            parts.extend(done_in(outcome.events))
            outcome.check()

        with shown_progress(settings):
            if stages:
                taken = weeks if _has_weeks(stages) else ()
                for made, some in runs_over(instance, lake, taken, stages):
                    make(made, some)
            if of_pairs:
                pairs = sorted(_pairs(lake, request, weeks))
                add_pairs(instance, map(pair_of, pairs))
                for made, some in runs_over(instance, lake, pairs, of_pairs):
                    make(made, some)
    done = added_up_done("", parts)
    asked = f", {done.calls} calls, {_cost(done.cost_usd)}" if done.calls else ""
    failed = f", {done.failed} failed: the next run tries them again" if done.failed else ""
    console().print(f"Done: {done.fresh} rows new or changed{asked}{failed}.")
    if not resources["evaluator"]["no_model"] and (evaluated := set(EVALUATED) & set(stages)):
        evaluators = EvaluatorChoice(**resources["evaluator"]).open()
        check_answers(content_of(lake, weeks), evaluators, evaluated)


def _selection(request: Backfill) -> tuple[list[str], list[str]]:
    """Return the stages of weeks or without partitions, and those of pairs.

    Raises:
        InputError: there is no such stage, or it has no fingerprints.
    """
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


def _has_weeks(stages: Sequence[str]) -> bool:
    graph = defs.resolve_asset_graph()
    return any(graph.get(dg.AssetKey(name)).partitions_def for name in stages)


def _weeks(lake: Lake, request: Backfill, known: set[str]) -> list[str]:
    """Return the weeks to take: those with a session that the conditions hold for.

    Conditions are known to hold only once sessions were read, so ``raw_sessions`` takes all weeks
    that are not read yet.
    """
    weeks = sorted(known & set(request.weeks)) if request.weeks else sorted(known)
    if not request.where:
        return weeks
    read, scope = set(lake.partitions(READING)), Scope(request.where)
    return [week for week in weeks if week not in read or scope.ids(lake, week)]


def _pairs(lake: Lake, request: Backfill, weeks: Sequence[str]) -> set[str]:
    scope = Scope(request.where)
    ids = {week: scope.ids(lake, week) for week in weeks} if request.where else {}
    return {
        pair_key(task, fingerprint)
        for (task, fingerprint), members in current_pairs(lake, weeks).items()
        if request.fingerprint in ("", fingerprint)
        and request.where.of("task").takes({"task": [task]})
        and (not request.where or any(found & ids[week] for week, found in members.items()))
    }


def _agree(
    lake: Lake,
    request: Backfill,
    stages: list[str],
    of_pairs: list[str],
    weeks: Sequence[str],
    resources: Resources,
    settings: Settings,
) -> Settings:
    """Show what is due and what it would cost; return the settings with the limits that hold.

    Raises:
        ConfigurationError: it may cost money and nobody agreed.
        click.exceptions.Exit: it was only to be shown.
    """
    screen = console()
    has_no_model = resources["evaluator"]["no_model"]
    run = configured_run(lake, counting(resources), weeks)
    found = {rehearsal.stage: rehearsal for rehearsal in rehearse(run, stages)} if stages else {}
    for stage in (*stages, *of_pairs):
        if stage not in found:
            screen.print(f"{stage}: what is up to date is skipped")
            continue
        screen.print(f"{stage}: {_due_text(found[stage], weeks)}")
        if has_no_model:
            continue
        asked = found[stage].asked
        tokens = f"{asked.usage.input_tokens:,} + {asked.usage.output_tokens:,} tokens"
        cost = _cost(asked.usage.cost_usd)
        screen.print(f"  estimate · {stage}: {asked.calls:,} calls, {tokens}, {cost}")
    if request.downstream:
        screen.print("What follows a stage that is due is known once that was done.")
    if request.dry_run:
        raise typer.Exit
    if has_no_model:
        return settings
    print_notes(run.evaluators.models)
    sessions = found[SCORES].sessions if SCORES in found else ()
    asked = added_up(list(found.values()))
    model = resources["evaluator"]["model"] or "the judges' models"
    estimate = estimate_of(model, asked, len(sessions))
    is_open = request.downstream or CANDIDATES in of_pairs
    return agree(replace(estimate, is_open=is_open), settings, yes=request.yes)


def _due_text(found: Rehearsal, weeks: Sequence[str]) -> str:
    if found.off:
        return f"off: {found.off}"
    if found.stage == RUBRICS:
        return "all score names"
    due = f"{counted(len(found.due), 'week')} to make, {found.current} up to date"
    return f"{weeks[0]} … {weeks[-1]}: {due}"


def _cost(cost_usd: float | None) -> str:
    return "cost not known" if cost_usd is None else f"${cost_usd:.4f}"


def _nothing_to_take(lake: Lake, request: Backfill, known: list[str]) -> InputError:
    """Return the error that names what no session fits, and what there is instead."""
    where, weeks = request.where, [week for week in known if week in (request.weeks or known)]
    if not known:
        move = "debrief sources lists what there is to read, debrief run reads it."
        return InputError(lake.url, "holds no session", move)
    if not weeks:
        first, last = request.weeks[0], request.weeks[-1]
        option = f"--weeks {first if first == last else f'{first}..{last}'}"
        to_come = first > week_of(datetime.now(UTC))
        reason = "is still to come" if to_come else "holds no session that was read"
        return InputError(option, reason, f"There are sessions in {known[0]}..{known[-1]}.")
    facts = [each for week in weeks for _, each in values_by_session(lake, week)] if where else []
    for condition in where.conditions:
        alone = Where((condition,))
        if not any(map(alone.takes, facts)):
            there = Counter(value for fact in facts for value in fact.get(condition[0], ()))
            none = f"Of no session a {condition[0]} is known."
            return InputError(f"--where {alone}", "fits no session", _listed(there) or none)
    if where:
        reason = "fits no session: each has some, and none has all"
        return InputError(f"--where {where}", reason, "Leave one out.")
    if option := request.fingerprint:
        there = Counter(pair[1] for pair in current_pairs(lake, weeks))
        return InputError(f"--fingerprint {option}", "is that of no training set", _listed(there))
    move = "debrief run makes what comes before it."
    return InputError(request.stage, "has no partition yet", move)


def _listed(there: Counter[str]) -> str:
    """Return the values that there are, the most frequent first; empty when there are none."""
    values = [value or "(none)" for value, _ in there.most_common(_SHOWN)]
    more = f" and {len(there) - len(values)} more" if len(there) > len(values) else ""
    return f"There are: {', '.join(values)}{more}." if values else ""

"""Have a model review some sessions and nothing else: ``run --newest``, and the offer of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from contextlib import ExitStack
from shlex import quote
from typing import TYPE_CHECKING, Any

import typer
from msgspec.structs import replace

from debrief.cli.asking import AskingEstimate, agree, estimate_of, print_notes
from debrief.cli.offer import HOW_TO_ASK, offer_text
from debrief.cli.shared import console
from debrief.cli.summary import check_answers, print_summary
from debrief.conditions import where_of_sessions
from debrief.conversion import open_lake
from debrief.evaluators import require_model
from debrief.lake import Lake
from debrief.review_offer import ReviewOffer, offered_model, review_offer, worth_reviewing
from debrief.sessions.model import SessionHead
from debrief.sessions.store import SESSIONS_TABLE
from debrief.settings import Settings
from debrief.stages.configuration import EvaluatorChoice
from debrief.stages.rehearsal import added_up, rehearse
from debrief.summary import Content, content_of
from pipelines.launching import (
    carry_out,
    configured_run,
    counting,
    run_quietly,
)
from pipelines.options import RunOptions, limits_of, run_config
from pipelines.progress import shown_progress

if TYPE_CHECKING:
    from rich.console import Console

REVIEWED = ("judge_evaluations", "session_scores")
"""The stages that ask; what follows from them is made without a model."""
Resources = dict[str, dict[str, Any]]
Agree = Callable[[AskingEstimate, Settings], Settings]
"""Returns the settings with the limits that were agreed to."""


def review_newest(
    options: RunOptions, most: int, *, yes: bool = False, dry_run: bool = False
) -> None:
    """Read all sessions, and have a model review the newest that nobody has reviewed.

    Args:
        options: of the command.
        most: sessions to review.
        yes: whatever it takes is agreed to.
        dry_run: only say what it takes.

    Raises:
        ConfigurationError: there is no model, or nobody agreed to the cost.
        DebriefError: a stage failed, or every question of one.
    """
    settings = options.apply()
    require_model("--newest", settings)
    run_quietly(without_model(options))
    lake = open_lake(settings.lake)
    sessions = worth_reviewing(lake, most)
    if not sessions:
        console().print("Every session that is worth a review has one.")
        return

    def consent(estimate: AskingEstimate, settings: Settings) -> Settings:
        return agree(estimate, settings, yes=yes, dry_run=dry_run)

    content = review(options, sessions, consent)
    where = f" --lake {quote(options.lake)}" * bool(options.lake)
    print_summary(lake, content, console(), where)


def offer_review(options: RunOptions, screen: Console) -> None:
    """Say that a run reviewed nothing; ask whether to have the newest sessions reviewed.

    Nothing is said where a model was asked, or none is wanted. Off a terminal nobody is asked: the
    command that does it is named.

    Args:
        options: of the run.
        screen: to print on.
    """
    settings = options.apply()
    has_no_model = options.resources(settings)["evaluator"]["no_model"]
    if not has_no_model or settings.no_model:
        return
    lake = open_lake(settings.lake)
    screen.print("No model was asked, so nothing was reviewed in this run.")
    offer = review_offer(lake, settings)
    if offer is None:
        if not offered_model(settings):
            screen.print(HOW_TO_ASK)
        return
    if not is_on_terminal():
        place = f" --lake {quote(options.lake)}" * bool(options.lake)
        place += "".join(f" --sessions {quote(folder)}" for folder in options.sessions)
        screen.print(f"{offer_text(offer)} {offer.command}{place}")
        return
    asked = replace(options, model=offer.model)
    offer = counted_offer(offer, asked)
    if typer.confirm(offer_text(offer), default=False):
        content = review(asked, offer.sessions, bound)
        screen.print(content.verdicts.sentences())


def is_on_terminal() -> bool:
    """Return whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def counted_offer(offer: ReviewOffer, options: RunOptions) -> ReviewOffer:
    """Return an offer with what it takes as counted, and not as it is on average."""
    with options.applied() as settings:
        lake = open_lake(settings.lake)
        resources = scoped(options.resources(settings), offer.sessions)
        with console(stderr=True).status("Counting what a review takes …"):
            estimate = estimated_review(lake, resources, offer.sessions)
    return replace(offer, tokens=estimate.tokens, cost_usd=estimate.cost_usd)


def bound(estimate: AskingEstimate, settings: Settings) -> Settings:
    """Keep to what a person has just agreed to, without a further question."""
    return agree(estimate, settings, yes=True).with_given(
        max_cost_usd=settings.max_cost_usd or estimate.most_usd
    )


def review(options: RunOptions, sessions: Collection[str], consent: Agree) -> Content:
    """Have a model review sessions of the lake; return what there is of all then.

    Args:
        options: with the model.
        sessions: ids.
        consent: agrees to what it takes; raises where it does not.

    Raises:
        ConfigurationError: the model has no key, or nobody agreed to the cost.
        DebriefError: a stage failed, or every question of one.
    """
    with options.applied() as settings:
        _ask(options, settings, sessions, consent)
    return run_quietly(without_model(options))


def without_model(options: RunOptions) -> RunOptions:
    """Return the options of a run that asks no model."""
    return replace(options, no_model=True, model="")


def _ask(
    options: RunOptions, settings: Settings, sessions: Collection[str], consent: Agree
) -> None:
    from pipelines.instance import end_dead_runs, open_instance
    from pipelines.queueing import runs_over

    resources, lake = scoped(options.resources(settings), sessions), open_lake(settings.lake)
    evaluators = EvaluatorChoice(**resources["evaluator"]).open()
    print_notes(evaluators.models)
    with shown_progress(settings) as shown, ExitStack() as stack:
        estimate = estimated_review(lake, resources, sessions)
        with shown.pause():
            resources["evaluator"] |= limits_of(consent(estimate, settings))
        shown.expect(estimate.calls)
        instance = stack.enter_context(open_instance(settings))
        end_dead_runs(instance)
        weeks = weeks_of(lake, sessions)
        for assets, some in runs_over(instance, lake, weeks, REVIEWED):
            carry_out(instance, "", some, run_config(resources), assets).check()
    check_answers(content_of(lake, weeks), evaluators, REVIEWED)


def scoped(resources: Resources, sessions: Collection[str]) -> Resources:
    """Return a run's configuration that takes these sessions alone."""
    return {**resources, "scope": {"where": [where_of_sessions(sessions)], "force": False}}


def weeks_of(lake: Lake, sessions: Collection[str]) -> list[str]:
    """Return the weeks in which sessions of the lake are."""
    return [
        week
        for week in lake.partitions(SESSIONS_TABLE)
        if any(lake.read(SESSIONS_TABLE, week, SessionHead, ("id", sessions)))
    ]


def estimated_review(lake: Lake, resources: Resources, sessions: Collection[str]) -> AskingEstimate:
    """Return what a review of sessions takes.

    Raises:
        ConfigurationError: settings do not name what is chosen, or a judge is wrong.
    """
    run = configured_run(lake, counting(resources), weeks_of(lake, sessions))
    asked = added_up(rehearse(run, REVIEWED))
    model = resources["evaluator"]["model"] or run.evaluators.name
    return estimate_of(model, asked, len(sessions))

"""Have a model review some sessions and nothing else: ``run --newest``, and the offer of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from shlex import quote
from typing import TYPE_CHECKING

import typer

from debrief.cli.asking import AskingEstimate, agree, print_notes
from debrief.cli.offer import HOW_TO_ASK, REVIEWED, counted_offer, estimated_review, offer_text
from debrief.cli.progress import shown_progress
from debrief.cli.run_options import Places, RunOptions
from debrief.cli.shared import console
from debrief.cli.summary import check_answers, print_summary
from debrief.conditions import where_of_sessions
from debrief.conversion import open_lake
from debrief.evaluators import require_model
from debrief.review_offer import offered_model, review_offer, worth_reviewing
from debrief.sessions.store import weeks_of_sessions
from debrief.settings import Settings
from debrief.summary import Content, content_of
from pipelines.configuration import configuration_of
from pipelines.run import carry_out_over, run_quietly

if TYPE_CHECKING:
    from rich.console import Console

Agree = Callable[[AskingEstimate, Settings], Settings]
"""Returns the settings with the limits that were agreed to."""


def review_newest(options: RunOptions) -> None:
    """Read all sessions, and have a model review the newest that nobody has reviewed.

    Raises:
        ConfigurationError: there is no model, or nobody agreed to the cost.
        DebriefError: a stage failed, or every question of one.
    """
    with options.applied() as settings:
        require_model("--newest", settings)
        run_quietly(without_model(options))
        lake = open_lake(settings.lake)
    sessions = worth_reviewing(lake, options.newest)
    if not sessions:
        console().print("Every session that is worth a review has one.")
        return

    def consent(estimate: AskingEstimate, settings: Settings) -> Settings:
        return agree(estimate, settings, yes=options.yes, dry_run=options.dry_run)

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
    with options.applied() as settings:
        if configuration_of(settings).has_model or settings.no_model:
            return
        lake = open_lake(settings.lake)
        offer = review_offer(lake, settings)
        has_model = bool(offered_model(settings))
    screen.print("No model was asked, so nothing was reviewed in this run.")
    if offer is None:
        if not has_model:
            screen.print(HOW_TO_ASK)
        return
    if not is_on_terminal():
        place = f" --lake {quote(options.lake)}" * bool(options.lake)
        place += "".join(f" --sessions {quote(folder)}" for folder in options.sessions or ())
        screen.print(f"{offer_text(offer)} {offer.command}{place}")
        return
    offer = counted_offer(lake, settings, offer)
    if typer.confirm(offer_text(offer), default=False):
        asked = replace(options, model=offer.model)
        content = review(asked, offer.sessions, bound)
        screen.print(content.verdicts.sentences())


def is_on_terminal() -> bool:
    """Return whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


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
        _ask(settings, sessions, consent)
    return run_quietly(without_model(options))


def without_model(options: RunOptions) -> Places:
    """Return the options of a run that asks no model."""
    return replace(options, no_model=True, model="", newest=0)


def _ask(settings: Settings, sessions: Collection[str], consent: Agree) -> None:
    configuration = configuration_of(settings).over(where_of_sessions(sessions))
    lake, evaluators = open_lake(settings.lake), configuration.stages.evaluator.open()
    print_notes(evaluators.models)
    with shown_progress(settings) as shown:
        estimate = estimated_review(lake, settings, sessions)
        with shown.pause():
            configuration = configuration.within(consent(estimate, settings))
        shown.expect(estimate.calls)
        weeks = weeks_of_sessions(lake, sessions)
        carry_out_over(settings, lake, weeks, configuration, REVIEWED)
    check_answers(content_of(lake, weeks), evaluators, REVIEWED)

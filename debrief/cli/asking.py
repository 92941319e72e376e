"""Consent before a command asks a model: show the estimate, ask, or take `--yes` or a limit."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer
from msgspec import Struct

from debrief.cli.shared import console
from debrief.errors import ConfigurationError
from debrief.markdown import counted
from debrief.models.programs import program_of
from debrief.permitted import lower

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.models.choosing import Models
    from debrief.models.usage import RunUsage
    from debrief.settings import Settings

USUAL_MARGIN = 1.5
"""How much more than the estimate may be spent once it is agreed to: answers are longer than
usual, or have to be asked for again."""
_CALLS_A_QUESTION = 2
"""How many calls may be made for each question that was announced, whoever agreed."""


class AskingEstimate(Struct, frozen=True, kw_only=True):
    """What asking a model is likely to take."""

    model: str
    calls: int
    tokens: int
    """Of the questions and of the answers."""
    cost_usd: float | None
    """None when the model's price is not known."""
    sessions: int = 0
    """That the questions are about; 0 where nobody counted."""
    recalled: int = 0
    """Answers that are kept from before, and cost nothing."""
    margin: float = USUAL_MARGIN
    """0: agreeing sets no limit."""
    is_open: bool = False
    """What follows is known only once this was done, and may be asked about too."""

    @property
    def most_usd(self) -> float | None:
        """Return what may be spent at most once it is agreed to, in whole cents; None: all."""
        if self.cost_usd is None or not self.margin:
            return None
        return max(round(self.cost_usd * self.margin + 0.005, 2), 0.01)

    @property
    def most_calls(self) -> int | None:
        """Return how many calls may be made; None where more questions may follow."""
        return None if self.is_open else self.calls * _CALLS_A_QUESTION


def estimate_of(
    model: str, asked: RunUsage, sessions: int = 0, *, margin: float = USUAL_MARGIN
) -> AskingEstimate:
    """Return the estimate that evaluators counted in a dry run."""
    usage = asked.usage
    return AskingEstimate(
        model=model,
        calls=asked.calls,
        tokens=usage.input_tokens + usage.output_tokens,
        cost_usd=usage.cost_usd,
        sessions=sessions,
        recalled=asked.recalled,
        margin=margin,
    )


def shown_tokens(tokens: int) -> str:
    """Return a count of tokens for people: ``12,400``, ``4.1 M``."""
    return f"{tokens / 1e6:,.1f} M" if tokens >= 1e6 else f"{tokens:,}"


def shown_usd(usd: float) -> str:
    """Return an amount for people: in cents, and more exactly below ten of them."""
    return f"${usd:,.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def estimate_text(estimate: AskingEstimate, settings: Settings) -> str:
    """Return in words what asking takes and how far it may go.

    Args:
        estimate: of a dry run.
        settings: whose limit holds, if there is one.
    """
    recalled = estimate.recalled
    kept = f" Kept from before: {counted(recalled, 'answer')}." * bool(recalled)
    if not estimate.calls:
        return f"{estimate.model} is asked nothing.{kept}"
    of = f" on {counted(estimate.sessions, 'session')}" * bool(estimate.sessions)
    most = lower(estimate.most_calls, settings.max_calls)
    bound = "" if most is None else f", in {counted(most, 'call')} at most"
    return (
        f"{estimate.model} would be asked {counted(estimate.calls, 'question')}{of}: "
        f"{amount_text(estimate, settings)}{bound}.{kept}"
    )


def amount_text(estimate: AskingEstimate, settings: Settings) -> str:
    """Return in words the tokens and the money that asking takes, without who is asked what."""
    return f"about {shown_tokens(estimate.tokens)} tokens, {_cost_text(estimate, settings)}"


def _cost_text(estimate: AskingEstimate, settings: Settings) -> str:
    limit = settings.max_cost_usd
    if estimate.cost_usd is None and program_of(estimate.model):
        return "of its plan"
    if estimate.cost_usd is None:
        return f"at a price that is not known ({settings.prices} may hold it)"
    about = f"about {shown_usd(estimate.cost_usd)}"
    if limit is None:
        most = estimate.most_usd
        return about if most is None else f"{about} (up to {shown_usd(most)})"
    left = "; the rest is left for the next run" * (estimate.cost_usd > limit)
    return f"{about} (up to {shown_usd(limit)}, the limit{left})"


def agree(
    estimate: AskingEstimate,
    settings: Settings,
    *,
    yes: bool = False,
    dry_run: bool = False,
    is_small: bool = False,
) -> Settings:
    """Print the estimate; return the settings with the limits that hold once it is agreed to.

    A limit in money or calls is an agreement too where nobody is there to be asked. A person who is
    asked agrees to what was printed, ``yes`` to any price of it. Calls are always limited.

    Args:
        estimate: of a dry run.
        settings: whose limits hold.
        yes: it is agreed to.
        dry_run: only print it.
        is_small: whoever typed the command agreed to its few questions; a person is asked only
            where the estimate is above the limit.

    Raises:
        ConfigurationError: nobody is there to be asked.
        click.Abort: the person does not want to go on.
        click.exceptions.Exit: it was only to be printed.
    """
    screen, limit = console(stderr=True), settings.max_cost_usd
    screen.print(estimate_text(estimate, settings))
    if dry_run:
        screen.print("Nothing was asked.")
        raise typer.Exit
    bounded = settings.with_given(max_calls=lower(estimate.most_calls, settings.max_calls))
    if yes or not (estimate.calls or estimate.is_open):
        return bounded
    is_above = limit is not None and (estimate.cost_usd or 0.0) > limit
    if is_small and not is_above:
        return bounded
    if sys.stdin.isatty():
        if is_small:
            typer.confirm("That is above the limit. Go on without it?", abort=True, err=True)
            return bounded.model_copy(update={"max_cost_usd": estimate.most_usd})
        typer.confirm("Go on?", abort=True, err=True)
        is_free = limit is None and not estimate.is_open
        return bounded.with_given(max_cost_usd=estimate.most_usd if is_free else None)
    if limit is None and settings.max_calls is None and not is_small:
        raise ConfigurationError(
            estimate.model, "was not asked, as nobody agreed to it", _agreement(estimate)
        )
    return bounded


def _agreement(estimate: AskingEstimate) -> str:
    """Return how to agree without a terminal: by a limit that can be kept."""
    if estimate.cost_usd is None:
        return f"Add --yes, or set DEBRIEF_MAX_CALLS={max(estimate.calls, 1)}."
    return "Add --yes, or a limit: --max-cost 2."


def print_notes(models: Models | None) -> None:
    """Print where models are asked that two keys could be for."""
    for note in models.notes if models is not None else ():
        console(stderr=True).print(note)


def agreed(
    settings: Settings,
    ask: Callable[[Evaluators], object],
    yes: bool,
    *,
    dry_run: bool = False,
    sessions: int = 0,
    **options: Any,
) -> Evaluators:
    """Say what asking a model takes, and return who asks once that is agreed to.

    Args:
        settings: which model, and its limits.
        ask: asks all questions; called here with evaluators that only count them.
        yes: it is agreed to.
        dry_run: only say it.
        sessions: that the questions are about.
        options: of ``make_evaluators``.

    Raises:
        ConfigurationError: nobody is there to be asked.
        click.Abort: the person does not want to go on.
        click.exceptions.Exit: it was only to be said.
    """
    from debrief.evaluators import make_evaluators

    if not dry_run:  # a key that is missing is said first
        print_notes(make_evaluators(settings, no_model=False, **options).models)
    counting = make_evaluators(settings, no_model=False, dry_run=True, **options)
    with console(stderr=True).status("Counting what it takes …"):
        ask(counting)
    estimate = estimate_of(counting.name, counting.spent, sessions)
    limited = agree(estimate, settings, yes=yes, dry_run=dry_run)
    return make_evaluators(limited, no_model=False, **options)

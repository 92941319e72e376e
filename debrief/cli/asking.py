"""Asking a model on a command: what it takes is said first, and asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import typer

from debrief.cli.shared import console, cost_text
from debrief.errors import InputError
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.evaluators import Evaluators
    from debrief.settings import Settings


def agreed(settings: Settings, ask: Callable[[Evaluators], object], yes: bool) -> Evaluators:
    """Say what asking a model takes, and return who asks once that is agreed to.

    Args:
        settings: which model, and its limits.
        ask: asks all questions; called here with evaluators that only count them.
        yes: it is agreed to.

    Raises:
        InputError: nobody is there to be asked.
        click.Abort: the person does not want to go on.
    """
    from debrief.evaluators import make_evaluators

    counting = make_evaluators(settings, offline=False, dry_run=True)
    ask(counting)
    spent = counting.spent
    console(stderr=True).print(
        f"{settings.model} would be asked {counted(spent.calls, 'question')} with "
        f"{spent.usage.input_tokens:,} tokens: {cost_text(spent.usage.cost_usd)}; "
        f"{spent.recalled} answers are in the cache."
    )
    if spent.calls and not yes:
        if not sys.stdin.isatty():
            raise InputError("the model", "was not asked", "Add --yes to go on.")
        typer.confirm("Go on?", abort=True, err=True)
    return make_evaluators(settings, offline=False)

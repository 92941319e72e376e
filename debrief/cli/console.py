"""Output for people: the console, errors, tables."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from debrief.errors import DebriefError

if TYPE_CHECKING:
    from rich.console import Console

P = ParamSpec("P")
R = TypeVar("R")


def console(stderr: bool = False) -> Console:
    """Return a console that does not guess at markup or numbers in what it prints."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False)


def told(command: Callable[P, R]) -> Callable[P, R]:
    """Make a command end with one line and exit code 1 on an error that a person can act on."""

    @wraps(command)
    def wrapper(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return command(*arguments, **options)
        except DebriefError as error:
            console(stderr=True).print(f"debrief: {error}", style="red", soft_wrap=True)
            sys.exit(1)

    return wrapper

"""Launching real runs from the command line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from debrief.cli.console import console
from debrief.cli.summary import print_summary
from debrief.errors import DebriefError
from debrief.settings import Settings
from pipelines.options import Choice

if TYPE_CHECKING:
    import dagster as dg

QUIET: dict[str, Any] = {"loggers": {"quiet": {}}}


def run_graph(choice: Choice, weeks: tuple[str, ...], ui_command: str | None = None) -> None:
    """Run the whole graph and print what came of it.

    Raises:
        DebriefError: an option is wrong, or a stage failed as a whole.
    """
    settings = choice.settle()
    started = time.monotonic()
    screen = console()
    if not choice.offline:
        _check_evaluators(settings, choice.model)
    screen.print(f"Debrief: sessions → {settings.lake}")
    from debrief.lake import Lake
    from pipelines.definitions import defs
    from pipelines.instance import open_instance
    from pipelines.progress import show_progress
    from pipelines.recovery import settle_at_start

    show_progress()
    with open_instance(settings) as instance:
        settle_at_start(instance)
        find = {"ops": {"find_sessions": {"config": {"weeks": list(weeks)}}}}
        result = defs.resolve_job_def("whole_graph").execute_in_process(
            instance=instance, run_config={**QUIET, **find}, raise_on_error=False
        )
        raise_on_failure(result)
        found = result.output_for_node("find_sessions")
    from debrief.summary import summarise

    print_summary(summarise(Lake(settings.lake), found), screen)
    screen.print(f"Took {time.monotonic() - started:.0f} s. Everything is in {settings.lake}")
    screen.print(f"Look at it: {ui_command or _ui_command(choice)}")


def raise_on_failure(result: dg.ExecuteInProcessResult) -> None:
    """Raise why a run failed.

    Raises:
        DebriefError: it did.
    """
    from pipelines.failures import first_failure, was_interrupted

    if was_interrupted(result):
        raise DebriefError(
            "The run", "was stopped; what was finished stays", "The same command goes on."
        )
    if not result.success:
        step, reason = first_failure(result)
        raise DebriefError(step, reason, f"The whole story is in run {result.run_id}.")


def _check_evaluators(settings: Settings, model: str) -> None:
    """Find out now, and not a minute into the run, that a judge or a key is wrong."""
    from debrief.evaluators import make_evaluators

    offline = not model and settings.offline
    make_evaluators(settings, offline=offline, model=model)


def _ui_command(choice: Choice) -> str:
    words = ["debrief ui"]
    words += [f"--lake {choice.lake}"] if choice.lake else []
    words += [f"--sessions {folder}" for folder in choice.sessions]
    words += ["--offline"] if choice.offline else []
    return " ".join(words)

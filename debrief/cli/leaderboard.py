"""``debrief leaderboard``: how models and prompts compare, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.presenter import Form, print_report
from debrief.cli.shared import (
    LakeUrl,
    existing_lake,
)
from debrief.errors import InputError

if TYPE_CHECKING:
    pass


def leaderboard(
    outcomes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Compare only on what these sources of outcomes say, such as execution; may be "
            "given more than once. Default: on every verdict.",
        ),
    ] = None,
    form: Form = "text",
    lake: LakeUrl = "",
) -> None:
    """Compare models, and prompts: how many of their reviewed sessions are complete.

    The first line is the answer for the two models with most reviewed sessions, or says how many
    more would do. Beside it stands what a session costs and how long it takes.
    With **--outcomes execution** only sessions count whose checks were run before and after their
    change (**debrief execute**), by how those ended.
    """
    from debrief.conversion import open_lake
    from debrief.outcomes.store import DECIDING, success_labels
    from debrief.outcomes.verdicts import labelled_verdict, verdicts_in
    from debrief.settings import load_settings
    from debrief.snapshots.model import fingerprint_names
    from debrief.training import leaderboard as board

    for source in outcomes or ():
        if source not in DECIDING:
            raise InputError(
                f"--outcomes {source}",
                "is no source that decides",
                f"Known: {', '.join(DECIDING)}.",
            )
    opened = open_lake(existing_lake(lake) or load_settings().lake)
    verdicts = (
        {id_: labelled_verdict(said) for id_, said in success_labels(opened, outcomes).items()}
        if outcomes
        else verdicts_in(opened)
    )
    names = fingerprint_names(opened)
    sessions = board.compared_sessions(opened, verdicts, board.tasks_of(opened))
    found = board.leaderboard(sessions, names)
    print_report(form, found, lambda: board.leaderboard_markdown(found, names))

"""``debrief leaderboard``: how models and prompts compare, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from debrief.cli.shared import (
    LakeUrl,
    chosen,
    console,
    existing_lake,
    print_json,
    print_unwrapped,
)
from debrief.errors import InputError, without_controls
from debrief.markdown import counted

if TYPE_CHECKING:
    from debrief.training.leaderboard import LeaderboardRow

FORMS = dict.fromkeys(("text", "markdown", "json"))


def leaderboard(
    outcomes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SOURCE",
            help="Compare only on what these sources of outcomes say, such as execution; may be "
            "given more than once. Default: on every verdict.",
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
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

    chosen("--format", form, FORMS)
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
    if form == "json":
        print_json(found)
    elif form == "markdown":
        print(without_controls(board.leaderboard_markdown(found, names)))
    else:
        _print(found.about_models, found.models, ("model",), names)
        _print(found.about_prompts, found.prompts, ("prompts", "tool", "model"), names)


def _print(
    answers: Sequence[str],
    rows: Sequence[LeaderboardRow],
    head: Sequence[str],
    names: Mapping[str, str],
) -> None:
    """Print the answers, and a table of the rows of five sessions or more."""
    from rich import box
    from rich.table import Table

    from debrief.training.leaderboard import HEADINGS, cells, folded

    out = console()
    for answer in answers:
        out.print(answer, soft_wrap=True)
    shown, few, sessions = folded(rows)
    if shown:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in head:
            table.add_column(heading)
        for heading in HEADINGS:
            table.add_column(heading, justify="right")
        for row in shown:
            prompts = names.get(row.prompt_fingerprint, row.prompt_fingerprint)[:40]
            key = (prompts, row.tool, row.model)[-len(head) :]
            table.add_row(*key, *cells(row))
        print_unwrapped(out, table)
    if few:
        rest = f"{counted(few, 'row')} of fewer than five sessions ({sessions:,} in all)"
        out.print(rest, style="dim")

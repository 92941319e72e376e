"""``debrief leaderboard``: how prompts, tools and models compare, in the terminal."""

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
    form: Annotated[
        str, typer.Option("--format", help="text, or with all measures: markdown or json.")
    ] = "text",
    lake: LakeUrl = "",
) -> None:
    """Compare prompts, tools and models: how many of their sessions are done and checked.

    With **--outcomes execution** only sessions count whose checks were run before and after their
    change (**debrief execute**), by how those ended.
    """
    from debrief.judging.model import JudgeEvaluation
    from debrief.lake import Lake
    from debrief.outcomes.store import DECIDING, success_labels
    from debrief.scoring.model import SessionScores
    from debrief.settings import load_settings
    from debrief.snapshots.model import SessionMetadataRow, fingerprint_names
    from debrief.training import leaderboard as board

    chosen("--format", form, FORMS)
    for source in outcomes or ():
        if source not in DECIDING:
            raise InputError(
                f"--outcomes {source}",
                "is no source that decides",
                f"Known: {', '.join(DECIDING)}.",
            )
    opened = Lake(existing_lake(lake) or load_settings().lake)
    scores = opened.rows("session_scores", SessionScores)
    if outcomes:
        scores = board.resting_on(scores, success_labels(opened, outcomes))
    rows = board.leaderboard(
        scores,
        opened.rows("session_metadata", SessionMetadataRow),
        opened.rows("judge_evaluations", JudgeEvaluation),
        board.work_of(opened),
    )
    names = fingerprint_names(opened)
    if form == "json":
        print_json(rows)
    elif form == "markdown":
        print(without_controls(board.leaderboard_markdown(rows, names)))
    else:
        _print(board.groups_of(rows), names)


def _print(groups: Sequence[Sequence[LeaderboardRow]], names: Mapping[str, str]) -> None:
    """Print a table for each group, of those rows that have a verdict."""
    from rich import box
    from rich.table import Table

    from debrief.training.leaderboard import interval_shown

    out = console()
    if not groups:
        out.print("No scored session yet: score a week first.")
    for group in groups:
        first = group[0]
        out.print(f"Judged by {first.eval_fingerprint}, scored by {first.scoring_model}", style="b")
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("#", "prompts", "tool", "model"):
            table.add_column(heading)
        for heading in ("sessions", "verdicts", "done, checked"):
            table.add_column(heading, justify="right")
        table.add_column("against the best")
        shown = [row for row in group if row.with_verdict]
        for row in shown:
            table.add_row(
                str(row.rank or "–"),
                names.get(row.prompt_fingerprint, row.prompt_fingerprint)[:40],
                row.tool,
                row.model,
                str(row.sessions),
                str(row.with_verdict),
                interval_shown(row.done),
                row.compared,
            )
        print_unwrapped(out, table)
        if len(shown) < len(group):
            out.print(f"{len(group) - len(shown)} more without a verdict", style="dim")
    if groups:
        out.print(
            "Done, checked: of the sessions with a verdict, with a 95 % interval. "
            "All that cannot be told from the best have rank 1. More: --format markdown"
        )

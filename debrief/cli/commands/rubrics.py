"""``debrief rubrics``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.commands.options import LakeUrl
from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True, help="The rubrics that were mined: read them, check them, compare them."
)


@app.command("show")
@told
def rubrics_show(
    lake: LakeUrl = "",
    score_name: Annotated[
        str, typer.Option(help="excellence, token_efficiency or user_turn_efficiency; all if none.")
    ] = "",
    form: Annotated[str, typer.Option("--format", help="text, markdown or json.")] = "text",
) -> None:
    """Show the final rubrics, how they did on other sessions, and which were dropped."""
    from debrief.cli.rubrics import show_rubrics

    show_rubrics(lake, score_name, form)


@app.command("lint")
@told
def rubrics_lint(
    path: Annotated[
        Path | None, typer.Argument(help="A JSON file of rubrics; those of the lake if none.")
    ] = None,
    lake: LakeUrl = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Mark what makes a rubric hard to judge by; exit code 1 when anything is marked."""
    from debrief.cli.rubrics import lint_rubrics

    raise typer.Exit(1 if lint_rubrics(path, lake, as_json) else 0)


@app.command("compare")
@told
def rubrics_compare(
    before: Annotated[str, typer.Argument(help="A lake, or a Monday: the set as of that week.")],
    after: Annotated[str, typer.Argument(help="Likewise.")],
    lake: LakeUrl = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two sets by the rubrics' keys: what came, went, weighs more, was reworded."""
    from debrief.cli.rubrics import compare_sets

    compare_sets(before, after, lake, as_json)

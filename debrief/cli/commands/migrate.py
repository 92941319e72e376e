"""``debrief migrate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def migrate(
    path: Annotated[
        Path, typer.Argument(help="A repository with a .weft or .lw_coder folder, or that folder.")
    ] = Path(),
    really: Annotated[
        bool, typer.Option("--apply", help="Write; without it, only what would be is told.")
    ] = False,
    target: Annotated[
        Path | None,
        typer.Option("--to", help="The .debrief folder to fill; the one beside it if none."),
    ] = None,
) -> None:
    """Make .debrief folders of .weft and .lw_coder ones by copy; nothing is overwritten.

    Sessions, training data, judges, plans (or tasks) and prompts are taken over. Prompts and
    metadata that a sample lacks are filled in from what lies around it, and listed in its
    metadata as filled in; what nobody can tell is reported as missing.
    """
    from debrief.cli.migrate import migrate as migrate_folders

    migrate_folders(path, target=target, really=really)

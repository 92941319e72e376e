"""``debrief sources``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def sources(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders to search; the usual places of this machine's user if none."),
    ] = None,
    read: Annotated[
        bool,
        typer.Option("--read", help="Read everything: turns, tokens, growth, failures by reason."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List what was found: transcripts by source, with counts and dates. Writes nothing."""
    from debrief.cli.sources import list_sources

    list_sources(folders or [], read=read, as_json=as_json)

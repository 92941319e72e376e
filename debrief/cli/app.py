"""The commands that need no orchestrator."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief import __version__
from debrief.cli.console import told

app = typer.Typer(
    name="debrief",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help=(
        "Turns the coding-agent sessions you already have into judged, scored, secrets-free "
        "training data, and says why each score is what it is.\n\n"
        "Start with **debrief demo** (sample sessions, no key, half a minute), then "
        "**debrief run** on your own."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"debrief {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print and exit.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


@app.command()
@told
def sources(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders to search; the usual places of this machine's user if none."),
    ] = None,
) -> None:
    """List what was found: transcripts by source, with counts and dates. Reads, writes nothing."""
    from debrief.cli.sources import list_sources

    list_sources(folders or [])

"""The ``debrief`` command where the recorder alone is installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from debrief.cli import database, record, serve
from debrief.cli.shared import ErrorReportingGroup
from debrief.version import VERSION

app = typer.Typer(
    name="debrief",
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Records work that you do yourself. Scores, training sets and all else come with the "
    "package agent-debrief.",
)


def show_version(is_given: bool) -> None:
    """Print the version, if it is asked for, and end."""
    if is_given:
        typer.echo(f"debrief {VERSION}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=show_version, is_eager=True, help="Print and exit."),
    ] = False,
) -> None:
    """Take the options that come before a command."""


app.add_typer(record.app, name="record")
if find_spec("sqlalchemy"):
    app.command()(serve.serve)
    app.add_typer(database.database_app, name="database")
    app.add_typer(database.tokens_app, name="tokens")

"""The commands that need no orchestrator, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief import __version__
from debrief.cli.commands import (
    cache,
    code,
    database,
    eval,
    export,
    hooks,
    judges,
    migrate,
    push,
    record,
    rubrics,
    score,
    serve,
    skill,
    sources,
    tokens,
    train,
)

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


app.add_typer(sources.app)
app.add_typer(code.app)
app.add_typer(migrate.app)
app.add_typer(push.app)
app.add_typer(eval.app)
app.add_typer(score.app)
app.add_typer(export.app)
app.add_typer(train.app)
app.add_typer(serve.app)
app.add_typer(hooks.app, name="hooks")
app.add_typer(judges.app, name="judges")
app.add_typer(cache.app, name="cache")
app.add_typer(database.app, name="database")
app.add_typer(record.app, name="record")
app.add_typer(rubrics.app, name="rubrics")
app.add_typer(skill.app, name="skill")
app.add_typer(tokens.app, name="tokens")

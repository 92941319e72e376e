"""``debrief cache``: the answers that were kept."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from debrief.cli.console import console

app = typer.Typer(no_args_is_help=True, help="The answers of language models that were kept.")


@app.command()
def prune(
    days: Annotated[
        float | None,
        typer.Option(help="Drop what was kept longer. Default: DEBRIEF_CACHE_DAYS, else 90."),
    ] = None,
    megabytes: Annotated[
        float | None,
        typer.Option(
            "--mb", help="Keep the newest up to this. Default: DEBRIEF_CACHE_MB, else 2000."
        ),
    ] = None,
) -> None:
    """Drop the oldest answers, and give their room back. Runs do it by themselves once a day."""
    from debrief.settings import load_settings
    from debrief.state.opening import limits, open_state

    options = {"DEBRIEF_CACHE_DAYS": days, "DEBRIEF_CACHE_MB": megabytes}
    given = {name: str(value) for name, value in options.items() if value is not None}
    settings = load_settings({**os.environ, **given})
    state = open_state(settings)
    dropped = state.prune(**limits(settings))
    state.compact()
    left = state.size()
    console().print(
        f"Dropped {dropped.answers} answers ({dropped.bytes / 1e6:.1f} MB); "
        f"{left.answers} are left ({left.bytes / 1e6:.1f} MB) in {state.location}"
    )


@app.command()
def share(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            help="Address of a Postgres database. Default: DEBRIEF_STATE_URL, else DATABASE_URL.",
        ),
    ] = "",
) -> None:
    """Copy the answers that this machine has kept to the database of a team: none is paid twice.

    The file stays as it is; what the team has already stays too.
    """
    from debrief.errors import ConfigurationError
    from debrief.settings import load_settings
    from debrief.state.opening import HERE, state_file
    from debrief.state.store import VARIABLE, State

    settings = load_settings()
    url = to or settings.state_url or settings.database_url
    if not url or url == HERE:
        raise ConfigurationError("--to", "names no database", f"Give one, or set {VARIABLE}.")
    own = State(state_file(settings))
    shared = State(url)
    new = shared.copy_from(own)
    console().print(f"{new} of {own.size().answers} answers are new in {shared.location}")

"""``debrief serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import told

app = typer.Typer()


@app.command()
@told
def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 is any that is free.")] = 8484,
    database: Annotated[
        str,
        typer.Option(
            help="Address of a Postgres database; DATABASE_URL if none, else the one that comes "
            "along."
        ),
    ] = "",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            help="Write a token of all scopes there (mode 600), unless the file is there.",
        ),
    ] = None,
    ready: Annotated[
        str,
        typer.Option(
            "--ready",
            metavar="RULE",
            help="What a session needs to be marked ready, beside a verified patch: none, or some "
            "of validation,passed,final-tree. DEBRIEF_READY_RULE if not given, else validation.",
        ),
    ] = "",
    rate: Annotated[
        float,
        typer.Option(
            min=0.1, max=1e6, help="Requests a second that one token may send, over time."
        ),
    ] = 400.0,
    log_level: Annotated[
        str, typer.Option("--log-level", help="debug, info, warning or error.")
    ] = "info",
) -> None:
    """Run the recorder's API: records in, checked; training lines out.

    Without **--database** or DATABASE_URL, Postgres is started on a socket of its own, with its
    data under **~/.debrief/postgres**. The database is migrated first. Clients need a token:
    **debrief tokens create NAME**.

    The log goes to the error output, a JSON object a line: who asked for what, how it was
    answered, how long it took; never what a record holds. SIGTERM ends it cleanly: running
    requests have 30 seconds.
    """
    from debrief.cli.serve import Wish
    from debrief.cli.serve import serve as run

    run(
        Wish(
            host=host,
            port=port,
            database=database,
            token_file=token_file,
            ready=ready,
            rate=rate,
            log_level=log_level,
        )
    )

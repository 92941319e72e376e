"""``debrief database``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True,
    help="The recorder's Postgres: look at it, migrate it, back it up, restore it.",
)

Database = Annotated[
    str,
    typer.Option(
        "--database", help="A Postgres address; DATABASE_URL if none, else the embedded one."
    ),
]


@app.command("status")
@told
def database_status(database: Database = "") -> None:
    """Tell where the database is, its revision, and what it holds; exit code 1 if it is away."""
    from debrief.cli.database import show_status

    show_status(database)


@app.command("migrate")
@told
def database_migrate(
    to: Annotated[
        str, typer.Option("--to", help="head, base (drop everything), or a revision such as 0002.")
    ] = "head",
    database: Database = "",
) -> None:
    """Bring the database to the revision that this version works with, or to another.

    All of it happens or nothing. Going back drops what the later revision added: make a backup
    first.
    """
    from debrief.cli.database import migrate

    migrate(database, to)


@app.command("backup")
@told
def database_backup(
    file: Annotated[Path, typer.Argument(help="To write; it must not exist.")],
    database: Database = "",
) -> None:
    """Write everything to a file, as of one moment, while the database is in use."""
    from debrief.cli.database import back_up

    back_up(database, file)


@app.command("restore")
@told
def database_restore(
    file: Annotated[Path, typer.Argument(help="Written by debrief database backup.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Drop what the database holds now.")
    ] = False,
    database: Database = "",
) -> None:
    """Bring the database to what a backup holds: all of it, or nothing.

    Cursors of earlier exports are refused afterwards.
    """
    from debrief.cli.database import bring_back

    bring_back(database, file, replace)

"""``debrief database``: the recorder's database, looked after."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from debrief.cli.shared import Database, console, counted

app = typer.Typer(
    no_args_is_help=True,
    help="The recorder's Postgres: look at it, migrate it, back it up, restore it.",
)


@app.command("status")
def database_status(database: Database = "") -> None:
    """Print where the database is, its revision, and what it holds; exit code 1 if it is away."""
    from debrief.recorder.storage.connecting import address_of, head
    from debrief.recorder.storage.store import RecordStore

    url = database_address(database)
    out = console()
    shown = address_of(url).set(drivername="postgresql").difference_update_query(["password"])
    out.print(f"database  {shown.render_as_string()}")
    with RecordStore(url) as store:
        out.print(f"revision  {store.revision() or 'none'} (this version works with {head()})")
        store.check()
        counts = store.counts()
    out.print(f"tasks     {counts.tasks}")
    out.print(f"sessions  {counts.sessions}, of them {counts.ready} ready")
    out.print(f"size      {counts.size / 1e6:,.1f} MB")


@app.command("migrate")
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
    from debrief.recorder.storage.store import RecordStore

    with RecordStore(database_address(database)) as store:
        before, after = store.migrate(to)
    if before == after:
        console().print(f"The database has revision {after or 'none'}; there is nothing to do.")
    else:
        console().print(f"Migrated the database from {before or 'none'} to {after or 'none'}.")


@app.command("backup")
def database_backup(
    file: Annotated[Path, typer.Argument(help="To write; it must not exist.")],
    database: Database = "",
) -> None:
    """Write everything to a file, as of one moment, while the database is in use."""
    from debrief.recorder.backup import backup

    size = backup(database_address(database), file)
    console().print(f"Wrote {file}, {size:,} bytes")


@app.command("restore")
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
    from debrief.recorder.backup import restore
    from debrief.recorder.storage.store import RecordStore

    url = database_address(database)
    restore(url, file, replace=replace)
    with RecordStore(url) as store:
        store.migrate()
        count = store.count()
    console().print(f"Restored {file}: {counted(count, 'session')}")


def database_address(option: str) -> str:
    """Return the address that ``--database`` gives, else the configured or embedded one.

    The embedded server runs until this process ends, if it does not run already.
    """
    from debrief.recorder.postgres import database_url
    from debrief.settings import load_settings

    return option or database_url(load_settings(), start=True)

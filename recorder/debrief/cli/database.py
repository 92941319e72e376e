"""``debrief tokens`` and ``database``: who may use the recorder's API, where records are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

import typer

from debrief.cli.shared import AsJson, Database, console, print_json

if TYPE_CHECKING:
    from debrief.recorder.storage.rows import Scope
    from debrief.recorder.storage.store import RecordStore


tokens_app = typer.Typer(
    no_args_is_help=True, help="Who may use the recorder's API: make tokens, list and revoke them."
)


@tokens_app.command("create")
def tokens_create(
    name: Annotated[str, typer.Argument(help="Whose it is, such as ci or ada-laptop.")],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, write or export; may be given more than once. All if none."),
    ] = None,
    database: Database = "",
    as_json: AsJson = False,
) -> None:
    """Make a token and show it once; only its digest is kept.

    **read** lists tasks, sessions and benchmarks; **write** stores them and marks sessions ready;
    **export** reads the records themselves.
    """
    from msgspec.structs import asdict

    from debrief.recorder.storage.rows import SCOPES

    with _store(database) as store:
        token, secret = store.add_token(name, cast("Sequence[Scope]", scope or SCOPES))
    if as_json:
        print_json({**asdict(token), "token": secret})
        return
    print(secret)
    console(stderr=True).print(
        f"The token of {token.name}, for {', '.join(token.scopes)}. It is not shown again: only "
        "its digest is kept."
    )


@tokens_app.command("list")
def tokens_list(database: Database = "", as_json: AsJson = False) -> None:
    """List the tokens: scopes, when they were made, last used and revoked."""

    with _store(database) as store:
        tokens = store.tokens()
    if as_json:
        print_json(tokens)
        return
    if not tokens:
        console().print("There are no tokens. Make one with: debrief tokens create NAME")
        return
    from rich.table import Table

    table = Table("name", "scopes", "made", "last used", "revoked", box=None, pad_edge=False)
    for token in tokens:
        moments = (token.created_at, token.last_used_at, token.revoked_at)
        times = ("" if at is None else f"{at:%Y-%m-%d %H:%M}" for at in moments)
        table.add_row(token.name, ", ".join(token.scopes), *times)
    console().print(table)


@tokens_app.command("revoke")
def tokens_revoke(
    name: Annotated[str, typer.Argument(help="As in **debrief tokens list**.")],
    database: Database = "",
) -> None:
    """Revoke a token at once and for good; its name is not used again."""
    with _store(database) as store:
        token = store.revoke_token(name)
    console().print(f"Revoked {token.name}.")


@contextmanager
def _store(database: str) -> Iterator[RecordStore]:
    from debrief.recorder.storage.store import RecordStore

    with RecordStore(database_address(database)) as store:
        if store.revision() is None:
            store.migrate()
        store.check()
        yield store


database_app = typer.Typer(
    no_args_is_help=True,
    help="The recorder's Postgres: look at it, migrate it.",
)


@database_app.command("status")
def database_status(database: Database = "") -> None:
    """Print where the database is, its revision, and what it holds; exit code 1 if it is away."""
    from debrief.recorder.postgres import programs_folder
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
    out.print(f"programs  {programs_folder()}")


@database_app.command("migrate")
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


def database_address(option: str) -> str:
    """Return the address that ``--database`` gives, else the configured or embedded one.

    The embedded server runs until this process ends, if it does not run already.
    """
    from debrief.recorder.postgres import database_url
    from debrief.settings import load_settings

    return option or database_url(load_settings(), start=True)

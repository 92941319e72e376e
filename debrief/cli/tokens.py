"""``debrief tokens``: who may use the recorder's API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

import typer
from rich.table import Table

from debrief.cli.console import console, print_json
from debrief.cli.database import database_address
from debrief.cli.options import AsJson, Database

if TYPE_CHECKING:
    from collections.abc import Sequence

    from debrief.recorder.storage.rows import Scope, Token
    from debrief.recorder.storage.store import RecordStore

app = typer.Typer(
    no_args_is_help=True, help="Who may use the recorder's API: make tokens, list and revoke them."
)


@app.command("create")
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
    from debrief.recorder.storage.rows import SCOPES

    with _store(database) as store:
        token, secret = store.add_token(name, cast("Sequence[Scope]", scope or SCOPES))
    if as_json:
        print_json({**_fields(token), "token": secret})
        return
    print(secret)
    console(stderr=True).print(
        f"The token of {token.name}, for {', '.join(token.scopes)}. It is not shown again: only "
        "its digest is kept."
    )


@app.command("list")
def tokens_list(database: Database = "", as_json: AsJson = False) -> None:
    """List the tokens: scopes, when they were made, last used and revoked."""

    with _store(database) as store:
        tokens = store.tokens()
    if as_json:
        print_json([_fields(token) for token in tokens])
        return
    if not tokens:
        console().print("There are no tokens. Make one with: debrief tokens create NAME")
        return
    table = Table("name", "scopes", "made", "last used", "revoked", box=None, pad_edge=False)
    for token in tokens:
        moments = (token.created_at, token.last_used_at, token.revoked_at)
        times = ("" if at is None else f"{at:%Y-%m-%d %H:%M}" for at in moments)
        table.add_row(token.name, ", ".join(token.scopes), *times)
    console().print(table)


@app.command("revoke")
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


def _fields(token: Token) -> dict[str, object]:
    names = ("name", "scopes", "created_at", "last_used_at", "revoked_at")
    return {name: getattr(token, name) for name in names}

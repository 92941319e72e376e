"""``debrief tokens``."""

from __future__ import annotations

from typing import Annotated

import typer

from debrief.cli.console import told

app = typer.Typer(
    no_args_is_help=True, help="Who may use the recorder's API: make tokens, list and revoke them."
)
Database = Annotated[
    str, typer.Option(help="Address of a Postgres database; as **debrief serve** if none.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("create")
@told
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
    from debrief.cli.tokens import create_token

    create_token(name, scope or [], database, as_json)


@app.command("list")
@told
def tokens_list(database: Database = "", as_json: AsJson = False) -> None:
    """List the tokens: scopes, when they were made, last used and revoked."""
    from debrief.cli.tokens import list_tokens

    list_tokens(database, as_json)


@app.command("revoke")
@told
def tokens_revoke(
    name: Annotated[str, typer.Argument(help="As in **debrief tokens list**.")],
    database: Database = "",
) -> None:
    """Revoke a token at once and for good; its name is not used again."""
    from debrief.cli.tokens import revoke_token

    revoke_token(name, database)

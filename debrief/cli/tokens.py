"""``debrief tokens``: made, listed, revoked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, cast

import msgspec

from debrief.cli.console import console
from debrief.recorder.postgres import database_url
from debrief.settings import load_settings

if TYPE_CHECKING:
    from debrief.recorder.storage.rows import Scope, Token
    from debrief.recorder.storage.store import RecordStore


def create_token(name: str, scopes: Sequence[str], database: str, as_json: bool) -> None:
    """Make a token and print it; nothing can print it again.

    Raises:
        ConflictError: there is one of that name.
        InputError: the name or a scope is not one.
    """
    from debrief.recorder.storage.rows import SCOPES

    with _store(database) as store:
        token, secret = store.add_token(name, cast("Sequence[Scope]", list(scopes) or SCOPES))
    if as_json:
        print(msgspec.json.encode({**_told(token), "token": secret}).decode())
        return
    print(secret)
    console(stderr=True).print(
        f"The token of {token.name}, for {', '.join(token.scopes)}. It is not shown again: only "
        "its digest is kept.",
        soft_wrap=True,
    )


def list_tokens(database: str, as_json: bool) -> None:
    """Print all tokens, revoked ones too."""
    with _store(database) as store:
        tokens = store.tokens()
    if as_json:
        print(msgspec.json.encode([_told(token) for token in tokens]).decode())
        return
    if not tokens:
        console().print("There are no tokens. Make one with: debrief tokens create NAME")
        return
    from rich.table import Table

    table = Table("name", "scopes", "made", "last used", "revoked", box=None, pad_edge=False)
    for token in tokens:
        table.add_row(
            token.name,
            ", ".join(token.scopes),
            _time(token.created_at),
            _time(token.last_used_at),
            _time(token.revoked_at),
        )
    console().print(table)


def revoke_token(name: str, database: str) -> None:
    """Revoke a token.

    Raises:
        NotFoundError: there is none of that name.
    """
    with _store(database) as store:
        token = store.revoke_token(name)
    console().print(f"Revoked {token.name}.")


@contextmanager
def _store(database: str) -> Iterator[RecordStore]:
    from debrief.recorder.storage.store import RecordStore

    with RecordStore(database or database_url(load_settings())) as store:
        if store.revision() is None:
            store.migrate()
        store.check()
        yield store


def _told(token: Token) -> dict[str, object]:
    return {
        "name": token.name,
        "scopes": token.scopes,
        "created_at": token.created_at,
        "last_used_at": token.last_used_at,
        "revoked_at": token.revoked_at,
    }


def _time(moment: datetime | None) -> str:
    return "" if moment is None else moment.strftime("%Y-%m-%d %H:%M")

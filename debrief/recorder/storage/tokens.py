"""Tokens: who may do what. Only the digest of a secret is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from debrief.errors import InputError
from debrief.recorder.errors import ConflictError, NotFoundError
from debrief.recorder.storage.rows import SCOPES, Scope, Token
from debrief.recorder.storage.tables import tokens as table

if TYPE_CHECKING:
    from sqlalchemy import Connection

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_PREFIX = "debrief_"
_COLUMNS = tuple(table.c[name] for name in Token.__struct_fields__)


def add(connection: Connection, name: str, scopes: Sequence[Scope]) -> tuple[Token, str]:
    """Make a token of 256 random bits; the secret is returned and kept nowhere.

    Raises:
        ConflictError: there is one of that name.
        InputError: the name or a scope is not one.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"token {name!r}", "is no name", "It is lower-case letters, digits and hyphens."
        )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        what = f"has no scope {', '.join(unknown)}" if unknown else "has no scope"
        raise InputError(f"token {name}", what, f"There are: {', '.join(SCOPES)}.")
    secret = _PREFIX + secrets.token_urlsafe(32)
    ordered = [scope for scope in SCOPES if scope in scopes]
    statement = (
        insert(table)
        .values(name=name, sha256=digest_of(secret), scopes=ordered)
        .on_conflict_do_nothing()
        .returning(*_COLUMNS)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise ConflictError(f"token {name}", "exists", "Take another name; names are not reused.")
    return _token(row), secret


def find(connection: Connection, secret: str) -> Token | None:
    """Return the token of a secret, unless it was revoked, and note that it was used."""
    digest = digest_of(secret)
    lately = sa.func.now() - sa.text("interval '1 minute'")
    unnoted = table.c.last_used_at.is_(None) | (table.c.last_used_at < lately)
    query = sa.select(table.c.sha256, unnoted.label("unnoted"), *_COLUMNS)
    query = query.where(table.c.sha256 == digest, table.c.revoked_at.is_(None))
    row = connection.execute(query).mappings().one_or_none()
    if row is None or not hmac.compare_digest(row["sha256"], digest):
        return None
    if row["unnoted"]:
        update = sa.update(table).where(table.c.sha256 == digest, unnoted)
        connection.execute(update.values(last_used_at=sa.func.now()))
    return _token(row)


def all_of(connection: Connection) -> tuple[Token, ...]:
    """Return all tokens, by name."""
    rows = connection.execute(sa.select(*_COLUMNS).order_by(table.c.name)).mappings()
    return tuple(_token(row) for row in rows)


def revoke(connection: Connection, name: str) -> Token:
    """Revoke a token; the time of the first revocation stays.

    Raises:
        NotFoundError: there is none of that name.
    """
    statement = (
        sa.update(table)
        .where(table.c.name == name)
        .values(revoked_at=sa.func.coalesce(table.c.revoked_at, sa.func.now()))
        .returning(*_COLUMNS)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"token {name}", "does not exist", "See: debrief tokens list")
    return _token(row)


def digest_of(secret: str) -> str:
    """Return what is kept of a token's secret, in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Any) -> Token:
    values = {name: row[name] for name in Token.__struct_fields__}
    return Token(**{**values, "scopes": tuple(values["scopes"])})

"""Bearer tokens and their scopes. Only the digest of a secret is stored."""

from __future__ import annotations

import hashlib
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
_COLUMNS = tuple(table.c[name] for name in Token.__struct_fields__)


def add(connection: Connection, name: str, scopes: Sequence[Scope]) -> tuple[Token, str]:
    """Make a token of 256 random bits; the secret is returned and stored nowhere.

    Raises:
        ConflictError: there is one of that name.
        InputError: the name or a scope is not allowed.
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            f"token {name!r}", "is not a name", "It is lower-case letters, digits and hyphens."
        )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        reason = f"has no scope {', '.join(unknown)}" if unknown else "has no scope"
        raise InputError(f"token {name}", reason, f"There are: {', '.join(SCOPES)}.")
    secret = "debrief_" + secrets.token_urlsafe(32)
    ordered = [scope for scope in SCOPES if scope in scopes]
    statement = (
        insert(table)
        .values(name=name, sha256=_digest(secret), scopes=ordered)
        .on_conflict_do_nothing()
        .returning(*_COLUMNS)
    )
    row = connection.execute(statement).mappings().one_or_none()
    if row is None:
        raise ConflictError(f"token {name}", "exists", "Take another name; names are not reused.")
    return _token(row), secret


def find(connection: Connection, secret: str) -> Token | None:
    """Return the token of a secret unless it was revoked, and store when it was used."""
    a_minute_ago = sa.func.now() - sa.text("interval '1 minute'")
    is_outdated = table.c.last_used_at.is_(None) | (table.c.last_used_at < a_minute_ago)
    is_the_token = sa.and_(table.c.sha256 == _digest(secret), table.c.revoked_at.is_(None))
    query = sa.select(is_outdated.label("is_outdated"), *_COLUMNS).where(is_the_token)
    row = connection.execute(query).mappings().one_or_none()
    if row is None:
        return None
    if row["is_outdated"]:
        connection.execute(sa.update(table).where(is_the_token).values(last_used_at=sa.func.now()))
    return _token(row)


def list_all(connection: Connection) -> tuple[Token, ...]:
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


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Any) -> Token:
    values = {name: row[name] for name in Token.__struct_fields__}
    return Token(**{**values, "scopes": tuple(values["scopes"])})

"""Bearer tokens and their scopes. Only the digest of a secret is stored."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert

from debrief.errors import InputError
from debrief.recorder.storage.connecting import Database
from debrief.recorder.storage.listing import tokens as table
from debrief.recorder.storage.rows import SCOPES, ConflictError, NotFoundError, Scope, Token

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_COLUMNS = tuple(table.c[name] for name in Token.__struct_fields__)


class TokenStore(Database):
    """The tokens of a database."""

    def add_token(self, name: str, scopes: Sequence[Scope]) -> tuple[Token, str]:
        """Make a token of 256 random bits.

        Returns:
            The token, and its secret, which is stored nowhere.

        Raises:
            ConflictError: there is one of that name, revoked or not.
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
        values = {"name": name, "sha256": _digest(secret), "scopes": ordered}
        statement = insert(table).values(values).on_conflict_do_nothing().returning(*_COLUMNS)
        with self._transaction() as connection:
            row = connection.execute(statement).one_or_none()
        if row is None:
            move = "Take another name; names are not reused."
            raise ConflictError(f"token {name}", "exists", move)
        return _token(row), secret

    def find_token(self, secret: str) -> Token | None:
        """Return the token of a secret unless it was revoked, and store when it was used."""
        a_minute_ago = sa.func.now() - sa.text("interval '1 minute'")
        is_outdated = table.c.last_used_at.is_(None) | (table.c.last_used_at < a_minute_ago)
        is_the_token = sa.and_(table.c.sha256 == _digest(secret), table.c.revoked_at.is_(None))
        used = sa.update(table).where(is_the_token).values(last_used_at=sa.func.now())
        with self._transaction() as connection:
            row = connection.execute(sa.select(*_COLUMNS, is_outdated).where(is_the_token)).first()
            if row is not None and row[-1]:
                connection.execute(used)
        return _token(row[:-1]) if row is not None else None

    def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, revoked ones too, by name."""
        with self._connection() as connection:
            rows = connection.execute(sa.select(*_COLUMNS).order_by(table.c.name))
            return tuple(map(_token, rows))

    def revoke_token(self, name: str) -> Token:
        """Revoke a token for good; revoking it again changes nothing.

        Raises:
            NotFoundError: there is none of that name.
        """
        first = sa.func.coalesce(table.c.revoked_at, sa.func.now())
        statement = sa.update(table).where(table.c.name == name).values(revoked_at=first)
        with self._transaction() as connection:
            row = connection.execute(statement.returning(*_COLUMNS)).one_or_none()
        if row is None:
            raise NotFoundError(f"token {name}", "does not exist", "See: debrief tokens list")
        return _token(row)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _token(row: Sequence[Any]) -> Token:
    name, scopes, *times = row
    return Token(name, tuple(scopes), *times)

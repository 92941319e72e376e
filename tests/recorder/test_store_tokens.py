"""Tokens and benchmarks beside the sessions."""

from __future__ import annotations

from typing import Any

import pytest

from debrief.errors import InputError
from debrief.recorder.storage.rows import (
    ConflictError,
    NotFoundError,
)
from debrief.recorder.storage.store import RecordStore


def test_a_token_is_found_by_its_secret_until_it_is_revoked(store: RecordStore) -> None:
    token, secret = store.add_token("ci", ["export", "read"])
    assert token.scopes == ("read", "export")
    found = store.find_token(secret)
    assert found is not None
    assert found.name == "ci"
    assert store.tokens()[0].last_used_at is not None
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), "\0", "\ud800"):
        assert store.find_token(wrong) is None
    revoked = store.revoke_token("ci")
    assert store.find_token(secret) is None
    assert store.revoke_token("ci") == revoked
    with pytest.raises(ConflictError):
        store.add_token("ci", ["read"])
    with pytest.raises(NotFoundError):
        store.revoke_token("cd")


def test_no_secret_is_in_the_database(store: RecordStore) -> None:
    secrets = [store.add_token(f"t{number}", ["read"])[1] for number in range(3)]
    assert len(set(secrets)) == 3
    assert all(len(secret) >= 8 + 43 for secret in secrets)
    with store._connection() as connection:
        kept = str(connection.exec_driver_sql("SELECT * FROM tokens").all())
    assert not any(secret in kept for secret in secrets)


@pytest.mark.parametrize(
    ("name", "scopes"),
    [("", ["read"]), ("CI", ["read"]), ("a" * 65, ["read"]), ("ci", []), ("ci", ["admin"])],
)
def test_a_token_needs_a_name_and_scopes_that_there_are(
    refusing: RecordStore, name: str, scopes: list[Any]
) -> None:
    with pytest.raises(InputError):
        refusing.add_token(name, scopes)

"""Tokens and benchmarks beside the sessions."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from debrief.errors import DebriefError, InputError
from debrief.recorder.storage.rows import (
    ConflictError,
    NotFoundError,
    UnknownTaskError,
)
from debrief.recorder.storage.store import RecordStore
from tests.recorder.rows import benchmark, row


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


def test_benchmarks_are_listed_by_adapter_version_task_and_session(store: RecordStore) -> None:
    session = store.add_session(row())
    details = {"seed": 7, "cases": ["a", "ü"]}
    kept = [
        store.add_benchmark(benchmark(value=0.5, n=40, task_id="cart", details=details)),
        store.add_benchmark(benchmark(value=0.75, version="4", session_id=session.id)),
        store.add_benchmark(benchmark(value=-1e300, metric="loss")),
    ]
    assert store.benchmarks().items == tuple(kept)
    assert kept[0].details == details
    cases: list[tuple[dict[str, Any], list[int]]] = [
        ({"version": "4"}, [1]),
        ({"task_id": "cart"}, [0]),
        ({"metric": "pass"}, [0, 1]),
        ({"session_id": session.id}, [1]),
        ({"adapter": "other"}, []),
    ]
    for values, expected in cases:
        assert store.benchmarks(**values).items == tuple(kept[number] for number in expected)
    page = store.benchmarks(limit=2)
    assert page.more
    assert store.benchmarks(cursor=page.cursor).items == (kept[2],)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"value": 1.0, "task_id": "drawer"}, UnknownTaskError),
        ({"value": 1.0, "session_id": uuid4()}, NotFoundError),
        ({"value": 1.0, "details": {"a": "\0"}}, InputError),
    ],
    ids=["no task", "no session", "NUL"],
)
def test_a_benchmark_that_cannot_be_is_refused(
    refusing: RecordStore, given: dict[str, Any], error: type[DebriefError]
) -> None:
    with pytest.raises(error):
        refusing.add_benchmark(benchmark(**given))
    assert refusing.benchmarks().items == ()

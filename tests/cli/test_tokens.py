"""``debrief tokens`` and ``debrief database``, as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from debrief.cli.app import app
from debrief.recorder.storage.store import RecordStore

Debrief = Callable[..., Result]


@pytest.fixture
def debrief(postgres_url: str) -> Debrief:
    """Type a command about a database that has nothing yet."""

    def typed(*arguments: str) -> Result:
        return CliRunner().invoke(app, [*arguments, "--database", postgres_url])

    return typed


def test_a_token_is_shown_once_listed_and_revoked(debrief: Debrief, postgres_url: str) -> None:
    made = debrief("tokens", "create", "ci", "--scope", "read", "--scope", "export")
    assert made.exit_code == 0, made.output
    secret = made.stdout.strip()
    assert "It is not shown again" in made.stderr
    with RecordStore(postgres_url) as store:
        token = store.find_token(secret)
    assert token is not None
    assert token.scopes == ["read", "export"]
    (listed,) = json.loads(debrief("tokens", "list", "--json").stdout)
    assert (listed["name"], listed["revoked_at"]) == ("ci", None)
    assert listed["last_used_at"]
    assert secret not in debrief("tokens", "list").output
    assert len(secret) >= 8 + 43
    with RecordStore(postgres_url) as store, store._connection() as connection:
        assert secret not in str(connection.exec_driver_sql("SELECT * FROM tokens").all())
    for _ in range(2):
        assert debrief("tokens", "revoke", "ci").stdout == "Revoked ci.\n"
    with RecordStore(postgres_url) as store:
        assert store.find_token(secret) is None
    again = debrief("tokens", "create", "ci")
    assert (again.exit_code, "names are not reused" in again.stderr) == (1, True)


def test_a_token_has_all_scopes_where_none_are_named(debrief: Debrief) -> None:
    told = json.loads(debrief("tokens", "create", "ada", "--json").stdout)
    assert told["scopes"] == ["read", "write", "export"]
    assert told["token"]


REFUSED = {
    "a scope that is none": (
        ["create", "ci", "--scope", "admin"],
        "There are: read, write, export",
    ),
    "a name that is none": (["create", "A B"], "lower-case letters"),
    "no name": (["create", ""], "lower-case letters"),
    "a name too long": (["create", "a" * 65], "lower-case letters"),
    "a token that is not there": (["revoke", "ci"], "See: debrief tokens list"),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_done_is_told_in_one_line(
    debrief: Debrief, arguments: list[str], words: str
) -> None:
    done = debrief("tokens", *arguments)
    assert done.exit_code == 1
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "There are no tokens. Make one" in debrief("tokens", "list").stdout


def test_a_database_that_went_back_is_not_migrated_by_the_way(debrief: Debrief) -> None:
    status = debrief("database", "status")
    assert (status.exit_code, "debrief database migrate" in status.output) == (1, True)
    assert debrief("tokens", "create", "ci").exit_code == 0
    assert debrief("database", "migrate", "--to", "0009").exit_code == 1
    assert "Migrated the database from 0005 to 0002." in (
        debrief("database", "migrate", "--to", "0002").stdout
    )
    done = debrief("tokens", "list")
    assert done.exit_code == 1
    assert "has revision 0002" in done.stderr
    assert "Run: debrief database migrate" in done.stderr
    status = debrief("database", "status")
    assert (status.exit_code, "revision  0002" in status.stdout) == (1, True)
    assert debrief("database", "migrate").exit_code == 0
    assert "there is nothing to do" in debrief("database", "migrate").stdout
    assert debrief("database", "status").exit_code == 0

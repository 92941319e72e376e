"""The service as a process: what it prints, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.cli.serve import ready_rule, write_token
from debrief.errors import ConfigurationError
from debrief.recorder.checks import ReadyRule
from debrief.recorder.service.running import listen
from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import build
from tests.recorder.service.helpers import (
    JSON,
    body_of,
    ensure_task,
    fill,
    new_record,
    no_writes,
)
from tests.waiting import LONG, wait_until


@contextmanager
def _process(
    url: str, folder: Path, *options: str
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    told, log = folder / "told", folder / "log"
    with told.open("w") as output, log.open("w") as errors:
        process = subprocess.Popen(
            [
                *(sys.executable, "-c", "from debrief.cli.app import app; app()", "serve"),
                *("--port", "0", "--database", url, *options),
            ],
            stdout=output,
            stderr=errors,
            env={**os.environ, "DEBRIEF_HOME": str(folder / "home"), "COLUMNS": "200"},
        )
    try:
        wait_until(lambda: "health:" in told.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process, told.read_text()
    finally:
        process.kill()
        process.wait(LONG)


def test_a_process_tells_how_to_begin_and_ends_what_it_began(
    postgres_url: str, tmp_path: Path
) -> None:
    with RecordStore(postgres_url) as store:
        store.migrate()
        ensure_task(store)
        fill(store, 60, build({}, {"big.txt": "word word\n" * 50_000}))
    token_file = tmp_path / "token"
    with _process(postgres_url, tmp_path, "--token-file", str(token_file)) as (process, told):
        url = next(word for word in told.split() if word.startswith("http://"))
        assert "60 sessions are stored" in told
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        headers = {"Authorization": f"Bearer {token_file.read_text().strip()}"}
        count = 0
        with httpx.stream("GET", f"{url}/export.jsonl", headers=headers, timeout=LONG) as answer:
            pieces = answer.iter_bytes()
            count += next(pieces).count(b"\n")
            process.send_signal(signal.SIGTERM)
            wait_until(lambda: not _reachable(url))
            for piece in pieces:
                count += piece.count(b"\n")

        assert count == 60
        assert process.wait(LONG) == 0
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert [event["route"] for event in events if event["event"] == "request"] == ["/export.jsonl"]
    assert not [event for event in events if event["level"] == "error"]


def _reachable(url: str) -> bool:
    try:
        httpx.get(f"{url}/health", timeout=LONG)
    except httpx.TransportError:
        return False
    return True


def test_a_first_start_tells_what_is_missing_and_an_upload_it_is_killed_over_is_stored_once(
    postgres_url: str, tmp_path: Path
) -> None:
    body = body_of(new_record())

    def send(told: str, token: str) -> httpx.Response:
        url = next(word for word in told.split() if word.startswith("http://"))
        headers = {"Authorization": f"Bearer {token}", **JSON}
        return httpx.post(f"{url}/sessions", content=body, headers=headers, timeout=LONG)

    with RecordStore(postgres_url) as store, ThreadPoolExecutor(1) as pool:
        with _process(postgres_url, tmp_path, "--host", "0.0.0.0") as (process, told):
            assert "debrief tokens create NAME" in told
            assert "Migrated the database" in told
            assert "TLS" in (tmp_path / "log").read_text()
            ensure_task(store)
            token = store.add_token("ci", ["write"])[1]
            with no_writes(store):
                answer = pool.submit(send, told, token)
                wait_until(lambda: _inserts(store) == 1)
                process.kill()
                with pytest.raises(httpx.TransportError):
                    answer.result(LONG)
        wait_until(lambda: _inserts(store) == 0)
        assert store.count() <= 1
        with _process(postgres_url, tmp_path) as (process, told):
            assert [send(told, token).status_code for _ in range(2)] == [201, 201]
            process.send_signal(signal.SIGINT)
            assert process.wait(LONG) == 0
        assert store.count() == 1


def _inserts(store: RecordStore) -> int:
    with store._connection() as connection:
        query = sa.text(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            " AND query LIKE 'INSERT INTO sessions%' AND state = 'active'"
        )
        return int(connection.execute(query).scalar_one())


def test_a_token_file_is_used_again_and_never_overwritten(
    record_store: RecordStore, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_token(record_store, tmp_path / "none" / "token")
    assert record_store.tokens() == ()
    path = tmp_path / "token"
    write_token(record_store, path)
    secret = path.read_text()

    write_token(record_store, path)

    assert path.read_text() == secret
    record_store.revoke_token("serve")
    with pytest.raises(ConfigurationError, match="not one of this database"):
        write_token(record_store, path)
    path.unlink()
    write_token(record_store, path)
    assert [token.name for token in record_store.tokens()] == ["serve", "serve-2"]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", ReadyRule()),
        ("validation", ReadyRule()),
        ("none", ReadyRule(validation=False)),
        ("passed, final-tree", ReadyRule(passed=True, on_final_tree=True)),
    ],
)
def test_the_ready_rule_is_said_in_words(text: str, rule: ReadyRule) -> None:
    assert ready_rule(text) == rule
    for none in ("always", "none,passed", "passed,x"):
        with pytest.raises(ConfigurationError, match="It is none, or some of"):
            ready_rule(none)


def test_an_address_that_is_taken_or_not_ours_is_told() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        reason = rf"127.0.0.1:{port}: cannot be listened on \(Address already in use"
        with pytest.raises(ConfigurationError, match=reason):
            listen("127.0.0.1", port)
    with pytest.raises(ConfigurationError, match="--host"):
        listen("no.such.host.invalid", 0)


@pytest.mark.parametrize("rate", ["0", "-1", "inf", "nan", "many"])
def test_a_rate_that_is_none_is_refused(rate: str) -> None:
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--rate", rate])
    assert done.exit_code == 2
    assert "--rate" in done.stderr

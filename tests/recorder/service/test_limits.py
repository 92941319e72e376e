"""How much clients may request, and the service as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from debrief.cli.app import app
from debrief.cli.serve import ready_rule, write_token
from debrief.errors import ConfigurationError
from debrief.recorder.checks import ReadyRule
from debrief.recorder.service.access import RateLimit
from debrief.recorder.service.problems import RefusedError
from debrief.recorder.service.running import ServiceLimits, listen
from debrief.recorder.storage.store import RecordStore
from tests.recorder.records import build
from tests.recorder.service.helpers import (
    JSON,
    Api,
    assert_problem,
    body_of,
    ensure_task,
    fill,
    new_record,
    no_writes,
    running,
    upload,
)
from tests.waiting import LONG, wait_until


@given(st.lists(st.floats(0, 5), max_size=60), st.floats(0.5, 20), st.integers(1, 20))
def test_no_token_gets_more_than_its_burst_and_rate(
    waits: list[float], rate: float, burst: int
) -> None:
    now = 0.0
    limit = RateLimit(rate, burst, now=lambda: now)
    allowed = 0
    for wait in waits:
        now += wait
        allowed += limit.take("a") == 0
    assert allowed <= burst + rate * now + 1e-6


def test_a_token_that_asks_too_often_is_told_when_to_come_again(record_store: RecordStore) -> None:
    limits = ServiceLimits(requests_a_second=0.01, burst=3)
    with running(record_store, limits) as api, api.client("read") as client:
        answers = [client.get("/tasks") for _ in range(5)]

        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 100
        with api.client("all") as another:
            assert another.get("/tasks").status_code == 200


def test_a_problem_names_at_most_so_much_and_nothing_that_breaks_a_terminal() -> None:
    refused = RefusedError(422, "a\x1b[2Jb\ud800", [f"reason {n}\n" for n in range(80)], "Move.")

    problem = refused.details()

    assert len(problem.reasons) == 51
    assert problem.reasons[-1] == "and 30 more"
    text = problem.model_dump_json()
    assert "\\u001b" not in text
    assert "\\n" not in text


def _connection(api: Api) -> socket.socket:
    return socket.create_connection(("127.0.0.1", api.port), timeout=LONG)


def test_more_connections_than_there_may_be_are_refused_until_some_end(store: RecordStore) -> None:
    with running(store, ServiceLimits(connections=20)) as api:
        with ExitStack() as open_connections:
            for _ in range(30):
                open_connections.enter_context(_connection(api))
            wait_until(lambda: httpx.get(f"{api.url}/health", timeout=LONG).status_code == 503)
        wait_until(lambda: httpx.get(f"{api.url}/health", timeout=LONG).status_code == 200)


@pytest.mark.parametrize(
    "body",
    [b"[" + b"1," * 3_900_000 + b"1]", b"[" + b'"",' * 2_600_000 + b"1]"],
    ids=["numbers", "strings"],
)
def test_a_large_body_keeps_no_other_client_waiting(api: Api, body: bytes) -> None:
    """Processor time is measured, of the clients and the service; one try of four may be slow."""
    for _ in range(4):
        began = time.process_time()
        json.loads(body)
        decoding = time.process_time() - began
        longest = _longest_wait_beside(api, body)
        if longest < 1 + 10 * decoding:
            return
    raise AssertionError(f"{longest} s beside {decoding} s of decoding")


def _longest_wait_beside(api: Api, body: bytes) -> float:
    with api.client() as client, ThreadPoolExecutor(1) as pool, api.client() as other:
        answer = pool.submit(client.post, "/sessions", content=body, headers=JSON)
        waits = [0.0]
        while not answer.done():
            asked = time.process_time()
            assert other.get("/health").status_code == 200
            waits.append(time.process_time() - asked)
    assert_problem(answer.result(), 422, "over 250,000 values")
    return max(waits)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-Flood: yes\r\n" * 10_000 + b"\r\n",
        b"GET /" + b"z" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
    ],
    ids=["many headers", "a long path", "two hosts", "two lengths", "NUL in a header"],
)
def test_a_head_that_is_too_long_or_ambiguous_is_refused(api: Api, head: bytes) -> None:
    with _connection(api) as connection:
        connection.sendall(head)
        assert connection.recv(1_000).startswith(b"HTTP/1.1 4")


def _end_connections(store: RecordStore, condition: str) -> None:
    with store._connection() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> "
                f"pg_backend_pid() AND datname = current_database() AND {condition}"
            )
        )


def test_an_upload_whose_connection_to_the_database_ends_is_not_stored_and_can_be_repeated(
    store: RecordStore,
) -> None:
    record = new_record()
    with running(store) as api, api.client() as client, ThreadPoolExecutor(1) as pool:
        with no_writes(store):
            answer = pool.submit(upload, client, record)
            while not answer.done():
                _end_connections(store, "query LIKE 'INSERT%'")
            assert_problem(answer.result(), 503)
        assert store.count() == 0
        assert upload(client, record).status_code == 201
    assert store.count() == 1


def test_a_client_that_goes_away_in_the_middle_of_a_body_stores_nothing(api: Api) -> None:
    before = api.store.count()
    with _connection(api) as connection:
        connection.sendall(
            b"POST /sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Authorization: Bearer " + api.tokens["write"].encode() + b"\r\n"
            b'Content-Length: 5000\r\n\r\n{"id":'
        )
    with api.client() as client:
        assert upload(client, new_record()).status_code == 201
    assert api.store.count() == before + 1


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
    log = (tmp_path / "log").read_text()
    assert '"GET /export.jsonl HTTP/1.1" 200' in log
    assert "word word" not in log
    assert headers["Authorization"].removeprefix("Bearer ") not in log
    assert "ERROR" not in log


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


def test_a_body_of_very_many_values_is_refused_before_any_is_looked_at(api: Api) -> None:
    body = b'{"record": {"meta": {"warnings": [0' + b",0" * 1_000_000 + b"]}}}"
    many_names = b"{" + b",".join(b'"n%d":1' % number for number in range(300_000)) + b"}"
    with api.client() as client:
        assert_problem(client.post("/sessions", content=body, headers=JSON), 422, "250,000 values")
        assert_problem(client.post("/tasks", content=many_names, headers=JSON), 422, "250,000")


@pytest.mark.parametrize(
    ("details", "words"),
    [({"deep": json.loads("[" * 70 + "]" * 70)}, "nested"), ({"big": [10**30]}, "integer over")],
)
def test_details_that_could_not_be_read_again_are_refused(
    api: Api, details: object, words: str
) -> None:
    figure = {"adapter": "a", "version": "1", "metric": "m", "value": 1.0, "details": details}
    with api.client() as client:
        assert_problem(client.post("/benchmarks", json=figure), 422, words)

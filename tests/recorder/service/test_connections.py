"""Clients that say little, or too much, on a bare connection."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import httpx
import pytest

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.recorder.service.limits import Limits
from debrief.recorder.storage.store import RecordStore
from tests.postgres import TEMPLATE, execute
from tests.recorder.service.helpers import Api, ensure_task, running, stored
from tests.waiting import LONG, wait_until

SOON = LONG / 2
IMPATIENT = Limits(
    head_seconds=0.4, body_grace=0.4, idle_seconds=1, stalled_seconds=0.5, connections=64
)


@pytest.fixture(scope="module")
def hurried(postgres_server: EmbeddedPostgres) -> Iterator[Api]:
    """A service that waits for nobody."""
    execute(postgres_server, f"CREATE DATABASE hurried TEMPLATE {TEMPLATE}")
    with RecordStore(postgres_server.url_of("hurried")) as store:
        ensure_task(store)
        with running(store, IMPATIENT) as api:
            yield api


def _all_of(connection: socket.socket) -> bytes:
    data = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            data += piece
    return data


def _head(api: Api, *more: str) -> bytes:
    token = f"Authorization: Bearer {api.tokens['all']}"
    lines = ["POST /tasks HTTP/1.1", "Host: x", token, "Content-Type: application/json", *more]
    return "\r\n".join([*lines, "", ""]).encode()


def test_a_connection_that_says_nothing_is_closed(hurried: Api) -> None:
    with hurried.connection() as connection:
        assert _all_of(connection) == b""


def test_half_a_head_is_told_that_it_is_late(hurried: Api) -> None:
    with hurried.connection() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")

        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in answer


def test_a_head_that_drips_is_late_as_well(hurried: Api) -> None:
    started = time.monotonic()
    with hurried.connection() as connection:
        connection.settimeout(0.05)
        with suppress(OSError):
            while time.monotonic() < started + SOON:
                connection.sendall(b"G")
                with suppress(TimeoutError):
                    if connection.recv(1000):
                        break
    assert time.monotonic() - started < SOON


def test_a_body_that_drips_is_late(hurried: Api) -> None:
    started = time.monotonic()
    with hurried.connection() as connection:
        connection.sendall(_head(hurried, "Content-Length: 5000"))
        connection.settimeout(0.05)
        answer = b""
        while not answer and time.monotonic() < started + SOON:
            with suppress(TimeoutError):
                connection.sendall(b" ")
                answer = connection.recv(1000)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"came at less than" in answer


def test_a_body_that_comes_steadily_may_take_longer_than_the_grace(
    record_store: RecordStore,
) -> None:
    body = json.dumps({"id": "steady", "name": "x", "description": "y" * 5_000}).encode()
    body += b" " * (60_000 - len(body))
    limits = Limits(body_grace=0.2, body_rate=200)
    with running(record_store, limits) as api, api.connection() as connection:
        connection.sendall(_head(api, "Content-Length: 60000", "Connection: close"))
        for start in range(0, 60_000, 6_000):
            connection.sendall(body[start : start + 6_000])
            time.sleep(0.05)

        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 201 "), answer


def test_a_connection_is_kept_between_requests_and_not_for_ever(hurried: Api) -> None:
    for _ in range(20):
        with hurried.connection() as connection:
            started = time.monotonic()
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert connection.recv(10_000).startswith(b"HTTP/1.1 200")
            time.sleep(0.6)
            again = b""
            with suppress(OSError):
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                again = connection.recv(10_000)
            if not again and time.monotonic() - started > 0.9:
                continue  # This machine let us wait for as long as the service waits for us.
            assert again.startswith(b"HTTP/1.1 200")

            assert _all_of(connection) == b""
            return
    pytest.fail("this machine is too slow for a connection to be used twice")


def test_a_thousand_slow_connections_do_not_keep_a_good_client_waiting(hurried: Api) -> None:
    with ExitStack() as held, hurried.client() as client:
        for number in range(1_000):
            connection = held.enter_context(hurried.connection())
            connection.sendall(b"POST /sessions HTTP/1.1\r\nHost: x\r\nX-Slow: ")
            if number % 100 == 99:
                started = time.monotonic()
                assert httpx.get(f"{hurried.url}/health").status_code == 200
                assert stored(client)
                assert time.monotonic() - started < SOON


def test_slow_connections_make_room_before_their_time_is_over(record_store: RecordStore) -> None:
    ensure_task(record_store)
    patient = Limits(head_seconds=300, body_grace=300, connections=50)
    with running(record_store, patient) as api, ExitStack() as held:
        for _ in range(300):
            connection = held.enter_context(api.connection())
            connection.sendall(_head(api, "Content-Length: 5000"))
        with api.client() as client:
            started = time.monotonic()
            assert stored(client)
            assert time.monotonic() - started < SOON


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-Flood: yes\r\n" * 5_000 + b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Long: " + b"y" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"z" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["many headers", "a long header", "a long path"],
)
def test_a_flood_of_headers_is_cut_off(api: Api, head: bytes) -> None:
    with api.connection() as connection:
        with suppress(OSError):
            connection.sendall(head)
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 431 "), answer[:200]


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"GET /health HTTP/1.1\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
        b"POST /tasks HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /health HTTP/2.0\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /h\xc3\xa4lth HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health#/../tasks HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n b: c\r\n\r\n",
        b"GET /health HTTP/1.1\nHost: x\n\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: +2\r\n\r\n{}",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST /tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=[
        "binary",
        "TLS",
        "no version",
        "no host",
        "two hosts",
        "negative length",
        "two lengths",
        "compressed transfer",
        "chunks and a length",
        "chunks in HTTP/1.0",
        "another version",
        "space before a colon",
        "NUL in a header",
        "path not ASCII",
        "fragment",
        "folded header",
        "bare line feeds",
        "the same length twice",
        "length with a sign",
        "chunked twice",
        "almost chunked",
        "chunked behind a control character",
        "tunnel",
    ],
)
def test_what_is_no_http_is_told_so_in_the_same_shape(api: Api, request_bytes: bytes) -> None:
    with api.connection() as connection:
        connection.sendall(request_bytes)
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 400


def test_a_chunk_that_is_none_ends_the_connection_and_nothing_else(api: Api) -> None:
    with api.connection() as connection:
        connection.sendall(_head(api, "Transfer-Encoding: chunked") + b"zz\r\nnonsense\r\n")
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert httpx.get(f"{api.url}/health").status_code == 200


def test_an_endless_trailer_is_cut_off(api: Api) -> None:
    with api.connection() as connection:
        connection.sendall(_head(api, "Transfer-Encoding: chunked") + b"2\r\n{}\r\n0\r\n")
        with suppress(OSError):
            connection.sendall(b"X-More: yes\r\n" * 50_000)
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]


def test_chunks_that_are_all_extension_are_cut_off(api: Api) -> None:
    with api.connection() as connection:
        connection.sendall(_head(api, "Transfer-Encoding: chunked"))
        with suppress(OSError):
            connection.sendall((b"1;" + b"x" * 1_000 + b"\r\n \r\n") * 500)
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 400 "), answer[:200]


def test_a_trailer_is_none_of_the_headers_and_small_chunks_are_taken(api: Api) -> None:
    body = b'{"id": "small-chunks", "name": "x"}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    with api.connection() as connection:
        connection.sendall(
            _head(api, "Transfer-Encoding: chunked", "Connection: close")
            + chunks
            + b"0\r\nContent-Encoding: gzip\r\n\r\n"
        )
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 201 "), answer[:200]


def test_a_chunk_whose_size_two_readers_could_take_differently_is_refused(api: Api) -> None:
    for size in (b"0x2", b"+2", b"2 ", b"fffffffffffffffff2", b"2\n{}\n0"):
        with api.connection() as connection:
            head = _head(api, "Transfer-Encoding: chunked", "Connection: close")
            connection.sendall(head + size + b"\r\n{}\r\n0\r\n\r\n")
            answer = _all_of(connection)

        assert answer.startswith(b"HTTP/1.1 400 "), (size, answer[:200])


def test_a_body_is_asked_for_only_where_it_is_wanted(api: Api) -> None:
    body = b'{"id": "expected", "name": "x"}'
    with api.connection() as connection:
        length = f"Content-Length: {len(body)}"
        connection.sendall(_head(api, length, "Expect: 100-continue", "Connection: close"))
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert _all_of(connection).startswith(b"HTTP/1.1 201 ")
    with api.connection() as connection:
        connection.sendall(
            b"POST /tasks HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"
        )
        assert _all_of(connection).startswith(b"HTTP/1.1 401 ")


def test_an_answer_to_head_has_no_body_that_the_next_answer_could_be_taken_for(api: Api) -> None:
    with api.connection() as connection:
        connection.sendall(b"HEAD /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 405 ")
    assert answer.endswith(b"\r\n\r\n")


def test_the_body_of_a_get_is_no_request(api: Api) -> None:
    inner = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with api.connection() as connection:
        connection.sendall(
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
            % (len(inner), inner)
        )
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "path",
    [
        *("/%68ealth", "/healt%68", "/%2Fhealth", "/x/%2e%2e/health", "/x/../health", "//health"),
        *("/health/", "/health;x", "/HEALTH", "/health%20", "/health%00", "/./health"),
        "/sessions%2F11111111-2222-4333-8444-555555555555",
        "/sessions%2f11111111-2222-4333-8444-555555555555%2Frecord",
        "/%65xport.jsonl",
    ],
)
def test_a_path_in_disguise_is_none_of_the_services(api: Api, path: str) -> None:
    token = f"Authorization: Bearer {api.tokens['all']}"
    with api.connection() as connection:
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\n{token}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 404 "), answer[:200]


def test_a_request_before_the_answer_to_the_last_ends_the_connection_with_that_answer(
    api: Api,
) -> None:
    with api.connection() as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1_000)
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in answer


def test_an_upgrade_is_not_followed(api: Api) -> None:
    with api.connection() as connection:
        connection.sendall(
            b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        )
        answer = _all_of(connection)

    assert answer.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_goes_away_in_the_middle_of_a_body_leaves_nothing_behind(api: Api) -> None:
    free = api.service.bodies.free
    with api.connection() as connection:
        connection.sendall(_head(api, "Content-Length: 5000") + b'{"id":')
        wait_until(lambda: api.service.bodies.free < free)

    wait_until(lambda: api.service.bodies.free == free)


def test_more_bodies_at_once_than_there_is_room_for_are_told_to_come_again(
    record_store: RecordStore,
) -> None:
    ensure_task(record_store)
    with running(record_store, Limits(bodies=2_000)) as api, api.client() as client:
        answer = client.post(
            "/tasks", content=b" " * 3_000, headers={"Content-Type": "application/json"}
        )

        assert answer.status_code == 503
        assert answer.headers["retry-after"]


def test_a_token_that_asks_too_often_is_told_when_to_come_again(record_store: RecordStore) -> None:
    limits = Limits(requests_a_second=0.01, burst=3)
    with running(record_store, limits) as api, api.client("read") as client:
        answers = [client.get("/tasks") for _ in range(5)]

        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 100
        with api.client("all") as another:
            assert another.get("/tasks").status_code == 200

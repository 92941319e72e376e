"""Messages to a webhook: a real server on loopback that is slow, busy, refusing or not there."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from debrief.redaction.redactor import Redactor
from debrief.settings import Settings
from debrief.weekly.message import ATTEMPTS, LONGEST, send, webhook_of

REDACTOR = Redactor(b"0" * 32)
TOKEN = "ghp_" + "R7qLw2ZtVx9KdM4nBsYp8HcJf3GaUe6TiXoQ"


class Hook(ThreadingHTTPServer):
    """Answers with the given statuses in turn, the last one for good."""

    daemon_threads = True

    def __init__(self, *statuses: int, delay: float = 0.0) -> None:
        self.statuses = list(statuses)
        self.delay = delay
        self.got: list[dict[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/services/T0/B0/secret-part"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append(json.loads(body))
        time.sleep(self.server.delay)
        statuses = self.server.statuses
        self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def hook(*statuses: int, delay: float = 0.0) -> Iterator[Hook]:
    server = Hook(*statuses, delay=delay)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_a_message_arrives_in_the_form_that_slack_takes() -> None:
    with hook(200) as server:
        assert send(server.url, "Week of 2026-11-09: 12 sessions", REDACTOR) == ""
        assert server.got == [{"text": "Week of 2026-11-09: 12 sessions"}]


def test_a_busy_server_is_asked_again_and_waited_for_longer_each_time() -> None:
    waits: list[float] = []
    with hook(503, 429, 200) as server:
        assert send(server.url, "hello", REDACTOR, sleep=waits.append) == ""
        assert len(server.got) == 3
    assert waits == [1.0, 2.0]


@pytest.mark.parametrize(("status", "attempts"), [(500, ATTEMPTS), (404, 1), (410, 1)])
def test_a_server_that_refuses_is_told_by_name_and_never_by_address(
    status: int, attempts: int
) -> None:
    with hook(status) as server:
        reason = send(server.url, "hello", REDACTOR, sleep=lambda _: None)
        assert len(server.got) == attempts
    assert reason == f"127.0.0.1 answered {status}"


def test_a_server_that_hangs_is_given_up() -> None:
    with hook(200, delay=0.5) as server:
        reason = send(server.url, "hello", REDACTOR, timeout=0.05, sleep=lambda _: None)
    assert "could not be reached: ReadTimeout" in reason
    assert "secret-part" not in reason


def test_a_server_that_is_not_there_costs_nothing_but_a_reason() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    reason = send(f"http://127.0.0.1:{port}/x", "hello", REDACTOR, sleep=lambda _: None)
    assert "could not be reached: ConnectError" in reason


@pytest.mark.parametrize(
    "url", ["hooks.example.com/x", "ftp://example.com/x", "http://", "http://["]
)
def test_what_is_no_address_is_said_to_be_none(url: str) -> None:
    assert send(url, "hello", REDACTOR) == "DEBRIEF_WEBHOOK_URL is no address of a web server"


def test_a_message_holds_no_secret_and_is_not_endless() -> None:
    with hook(200) as server:
        send(server.url, f"take_sessions failed: token {TOKEN} refused. {'why ' * 2_000}", REDACTOR)
        text = server.got[0]["text"]
    assert TOKEN not in text
    assert "<secret:" in text
    assert len(text) == LONGEST


@pytest.mark.parametrize(
    ("values", "url"),
    [
        ({}, ""),
        ({"DEBRIEF_WEBHOOK_URL": "http://x/"}, "http://x/"),
        ({"DEBRIEF_WEBHOOK_URL": "http://x/", "DEBRIEF_WEBHOOK": "off"}, ""),
    ],
)
def test_messages_go_out_only_where_one_is_asked_for(values: dict[str, str], url: str) -> None:
    from pathlib import Path

    assert webhook_of(Settings(home=Path("/nowhere"), lake="/nowhere", values=values)) == url

"""Messages to a webhook: a real server on loopback that is slow, busy, refusing or not there."""

from __future__ import annotations

import socket

import pytest

from debrief.redaction.redactor import Redactor
from debrief.settings import load_settings
from debrief.weekly.message import ATTEMPTS, LONGEST, send, webhook_of
from tests.weekly.hooks import hook

REDACTOR = Redactor(b"0" * 32)
TOKEN = "ghp_" + "R7qLw2ZtVx9KdM4nBsYp8HcJf3GaUe6TiXoQ"


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

    assert webhook_of(load_settings({"DEBRIEF_HOME": "/nowhere", **values})) == url

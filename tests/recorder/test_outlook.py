"""What the start of a session tells of its end."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.recorder.client import RecorderAwayError, RecorderRefusedError
from debrief.recorder.preflight import preflight_check
from debrief.settings import Settings, load_settings
from tests.recorder.session_scenario import Records, records_server
from tests.waiting import LONG


@pytest.fixture
def server() -> Iterator[Records]:
    with records_server() as served:
        yield served


def settings(home: Path, url: str = "", token: str = "a-token") -> Settings:
    told = {"DEBRIEF_HOME": str(home), "DEBRIEF_RECORDER_URL": url, "DEBRIEF_RECORDER_TOKEN": token}
    return load_settings({name: value for name, value in told.items() if value})


def test_a_task_that_is_there_is_no_hindrance(server: Records, tmp_path: Path) -> None:
    assert preflight_check(settings(tmp_path, server.url), "cart", LONG) is None
    assert server.asked == ["GET /tasks/cart"]


def test_nobody_is_asked_where_no_server_is_set(tmp_path: Path) -> None:
    assert preflight_check(settings(tmp_path), "cart", LONG) is None


def test_a_task_that_is_not_there_is_told_with_how_it_is_made(
    server: Records, tmp_path: Path
) -> None:
    found = preflight_check(settings(tmp_path, server.url), "checkout", LONG)
    assert isinstance(found, RecorderRefusedError)
    assert str(found) == (
        f"{server.url}: has no task checkout yet. "
        "Make it there at the end: debrief record stop --create-task NAME"
    )


def test_a_server_that_has_nothing_of_ours_is_told(server: Records, tmp_path: Path) -> None:
    server.answers = [(404, {}, b'{"place": "path", "reasons": ["is none"]}')]
    found = preflight_check(settings(tmp_path, server.url), "checkout", LONG)
    assert "refused (404): path: is none. Check DEBRIEF_RECORDER_URL." in str(found)


def test_a_token_that_may_not_look_is_no_hindrance(server: Records, tmp_path: Path) -> None:
    server.answers = [(403, {}, b'{"reasons": ["has no read scope"]}')]
    assert preflight_check(settings(tmp_path, server.url), "checkout", LONG) is None


def test_a_token_that_is_none_is_told(server: Records, tmp_path: Path) -> None:
    server.answers = [(401, {}, b'{"reasons": ["was revoked"]}')]
    found = preflight_check(settings(tmp_path, server.url), "cart", LONG)
    assert "refused (401): was revoked. Check DEBRIEF_RECORDER_TOKEN." in str(found)
    found = preflight_check(settings(tmp_path, server.url, token=""), "cart", LONG)
    assert isinstance(found, ConfigurationError)
    assert found.culprit == "DEBRIEF_RECORDER_TOKEN"


def test_a_server_that_is_away_is_told_after_one_attempt(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        found = preflight_check(settings(tmp_path, url), "cart", LONG)
    assert isinstance(found, RecorderAwayError)
    assert "cannot be reached" in found.reason
    assert "waits here" in found.next_move


def test_a_busy_server_is_not_waited_for(server: Records, tmp_path: Path) -> None:
    server.answers = [(503, {"Retry-After": "1"}, b"full")]
    found = preflight_check(settings(tmp_path, server.url), "cart", LONG)
    assert isinstance(found, RecorderAwayError)
    assert len(server.asked) == 1


def test_a_server_that_says_nothing_is_not_waited_for(server: Records, tmp_path: Path) -> None:
    server.hang.clear()
    began = time.monotonic()
    found = preflight_check(settings(tmp_path, server.url), "cart", 0.2)
    assert time.monotonic() - began < LONG / 2
    assert isinstance(found, RecorderAwayError)
    assert "no answer in time" in found.reason


@pytest.mark.parametrize("answer", [b"<html>", b"[]", b"{}", b'{"id": 1}', b'{"id": "x"}'])
def test_a_server_that_is_none_of_ours_is_told(
    server: Records, tmp_path: Path, answer: bytes
) -> None:
    server.answers = [(200, {}, answer)]
    found = preflight_check(settings(tmp_path, server.url), "cart", LONG)
    assert "gave an answer that is not a recorder's. Check DEBRIEF_RECORDER_URL." in str(found)

"""What the start of a session finds out about the server that its record is meant for."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.recorder.client import RecorderAwayError, RecorderRefusedError
from debrief.recorder.sending import preflight_check
from debrief.settings import Settings, load_settings
from tests.recorder.session_scenario import Records, records_server
from tests.waiting import LONG


@pytest.fixture
def server() -> Iterator[Records]:
    with records_server() as served:
        yield served


def settings(home: Path, url: str = "", token: str = "a-token") -> Settings:
    values = {
        "DEBRIEF_HOME": str(home),
        "DEBRIEF_RECORDER_URL": url,
        "DEBRIEF_RECORDER_TOKEN": token,
    }
    return load_settings({name: value for name, value in values.items() if value})


def test_an_upload_that_nothing_speaks_against_has_no_error(
    server: Records, tmp_path: Path
) -> None:
    assert preflight_check(settings(tmp_path, server.url), "cart", LONG) is None
    assert preflight_check(settings(tmp_path), "checkout", LONG) is None
    assert server.asked == ["GET /tasks/cart"]
    server.answers = [(403, {}, b'{"reasons": ["has no read scope"]}')]
    assert preflight_check(settings(tmp_path, server.url), "checkout", LONG) is None


NOT_OURS = "gave an answer that is not a recorder's. Check DEBRIEF_RECORDER_URL."
REFUSALS = {
    "no such task": (
        None,
        "has no task checkout yet. "
        "Make it there at the end: debrief record stop --create-task NAME",
    ),
    "no such page": (
        (404, b'{"place": "path", "reasons": ["is none"]}'),
        "refused (404): path: is none. Check DEBRIEF_RECORDER_URL.",
    ),
    "a revoked token": (
        (401, b'{"reasons": ["was revoked"]}'),
        "refused (401): was revoked. Check DEBRIEF_RECORDER_TOKEN.",
    ),
    **{f"an answer {text!r}": ((200, text), NOT_OURS) for text in (b"<html>", b"[]", b"{}")},
    **{f"an answer {text!r}": ((200, text), NOT_OURS) for text in (b'{"id": 1}', b'{"id": "x"}')},
}


@pytest.mark.parametrize(("answer", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_what_an_upload_would_be_refused_for_is_said(
    server: Records, tmp_path: Path, answer: tuple[int, bytes] | None, reason: str
) -> None:
    server.answers = [(answer[0], {}, answer[1])] if answer else []
    error = preflight_check(settings(tmp_path, server.url), "checkout", LONG)
    assert reason in str(error)
    assert answer or isinstance(error, RecorderRefusedError)


def test_a_missing_token_is_said(server: Records, tmp_path: Path) -> None:
    error = preflight_check(settings(tmp_path, server.url, token=""), "cart", LONG)
    assert isinstance(error, ConfigurationError)
    assert error.culprit == "DEBRIEF_RECORDER_TOKEN"


def test_a_server_that_is_away_busy_or_silent_is_asked_once_and_not_waited_for(
    server: Records, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        away = preflight_check(settings(tmp_path, url), "cart", LONG)
    assert isinstance(away, RecorderAwayError)
    assert "cannot be reached" in away.reason
    assert "waits here" in away.next_move
    server.answers = [(503, {"Retry-After": "1"}, b"full")]
    assert isinstance(
        preflight_check(settings(tmp_path, server.url), "cart", LONG), RecorderAwayError
    )
    assert len(server.asked) == 1
    server.hang.clear()
    began = time.monotonic()
    silent = preflight_check(settings(tmp_path, server.url), "cart", 0.2)
    assert time.monotonic() - began < LONG / 2
    assert "no answer in time" in str(silent)

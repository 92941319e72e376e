"""What a client does about a server that is busy, slow, away, broken or refuses."""

from __future__ import annotations

import socket
import time
from email.utils import formatdate
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import structs

from debrief.errors import ConfigurationError, DebriefError
from debrief.recorder.client import (
    RETRIES,
    RecorderAwayError,
    RecorderClient,
    RecorderRefusedError,
    client_of,
)
from debrief.recorder.encoding import encode_record
from debrief.recorder.stopping import preflight_check
from debrief.retry import RetryPolicy
from debrief.settings import Settings, load_settings
from tests.recorder.records import build
from tests.recorder.session_scenario import Records
from tests.waiting import LONG, wait_until

RECORD = build(session_id=uuid4())
TEXT = encode_record(RECORD)


PASSING = [408, 425, 429, 500, 502, 503, 504]


@pytest.mark.parametrize("status", PASSING)
def test_what_may_pass_is_tried_again(server: Records, status: int) -> None:
    server.tasks.add(RECORD.meta.task_id)
    server.answers = [(status, {}, b"busy")]
    with server.client() as client:
        assert client.send(TEXT, RECORD.meta).status == "draft"
    assert len(server.asked) == 2
    assert server.records == {str(RECORD.meta.session_id): TEXT}


STAYING = [301, 400, 401, 403, 404, 409, 411, 413, 415, 422, 501]


@pytest.mark.parametrize("status", STAYING)
def test_what_stays_is_told_at_once(server: Records, status: int) -> None:
    reasons = b'{"place": "record", "reasons": ["one", "two"], "nextMove": "Mend it."}'
    server.answers = [(status, {"Location": "http://elsewhere.example.org/"}, reasons)]
    with pytest.raises(RecorderRefusedError) as caught, server.client() as client:
        client.send(TEXT, RECORD.meta)
    assert caught.value.reasons == ["record: one", "record: two"]
    assert caught.value.status == status
    assert caught.value.next_move
    assert server.asked == ["POST /sessions", "GET /health"][: 2 if status == 422 else 1]


def test_a_server_of_an_earlier_version_is_named_as_the_reason(server: Records) -> None:
    refused = b'{"reasons": ["record.meta.version: should be 1 or 2"]}'
    server.answers = [(422, {}, refused), (200, {}, b'{"status": "ok", "version": "0.1.0"}')]
    with pytest.raises(RecorderRefusedError) as caught, server.client() as client:
        client.send(TEXT, RECORD.meta)
    assert caught.value.reasons == ["takes records up to version 2; this one is of 3"]
    assert caught.value.next_move == "Upgrade the server."


WAITS = {"seconds": lambda: "1", "a date": lambda: formatdate(time.time() + 90, usegmt=True)}


@pytest.mark.parametrize("asked", WAITS.values(), ids=WAITS)
def test_a_server_that_asks_for_time_is_given_it(server: Records, asked: object) -> None:
    server.tasks.add(RECORD.meta.task_id)
    waits: list[float] = []
    policy = RetryPolicy(attempts=3, sleep=waits.append)
    server.answers = [(429, {"Retry-After": asked()}, b"")]  # type: ignore[operator]
    with server.client(policy) as client:
        client.send(TEXT, RECORD.meta)
    assert len(waits) == 1
    assert 0 < waits[0] <= 92


def test_a_server_that_asks_for_too_much_time_is_left_alone(server: Records) -> None:
    server.answers = [(503, {"Retry-After": "3600"}, b"")]
    with pytest.raises(RecorderAwayError, match=r"is busy \(503\)"):
        server.client().send(TEXT, RECORD.meta)
    assert len(server.asked) == 1


def test_attempts_end_and_each_wait_is_reported_with_its_reason(server: Records) -> None:
    lines: list[str] = []
    policy = structs.replace(RETRIES, attempts=3, sleep=lambda seconds: None)
    server.answers = [(503, {}, b"the wall"), (500, {}, b"\x1b[2Jdown"), (503, {}, b"the wall")]
    client = RecorderClient(server.url, "a-token", policy, report=lines.append)
    with client, pytest.raises(RecorderAwayError, match=r"is busy \(503\): the wall"):
        client.send(TEXT, RECORD.meta)
    assert [line.split(";")[0] for line in lines] == [
        f"{server.url}: is busy (503): the wall",
        f"{server.url}: is busy (500): \ufffd[2Jdown",
    ]


def test_a_server_that_never_answers_is_given_up_on(server: Records) -> None:
    server.hang.clear()
    policy = RetryPolicy(attempts=2, first_wait=0.0)
    began = time.monotonic()
    with (
        RecorderClient(server.url, "a-token", policy, timeout=0.2) as client,
        pytest.raises(RecorderAwayError, match="no answer in time"),
    ):
        client.send(TEXT, RECORD.meta)
    assert time.monotonic() - began < LONG
    server.hang.set()
    wait_until(lambda: len(server.asked) == 2)


ODD = {
    "a page": b"<html>welcome</html>",
    "nothing": b"",
    "a list": b"[]",
    "another session": b'{"id": "x", "sha256": "y"}',
    "other bytes": f'{{"id": "{RECORD.meta.session_id}", "sha256": "{"0" * 64}"}}'.encode(),
    "no bottom": b'{"id":' * 100_000,
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_answer_that_does_not_prove_the_record_is_there_is_no_success(
    server: Records, answer: bytes
) -> None:
    server.answers = [(200, {}, answer)]
    with pytest.raises(RecorderRefusedError), server.client() as client:
        client.send(TEXT, RECORD.meta)


def test_a_servers_words_cannot_reach_a_terminals_controls(server: Records) -> None:
    server.answers = [(422, {}, b'{"reasons": ["a\\u001b[2Jb\\u202ec\\nd"]}')]
    with pytest.raises(RecorderRefusedError) as caught, server.client() as client:
        client.send(TEXT, RECORD.meta)
    assert caught.value.reasons == ["a\ufffd[2Jb\ufffdc d"]


WRONG = {
    "no address": ({"DEBRIEF_RECORDER_TOKEN": "t"}, "DEBRIEF_RECORDER_URL: is not set"),
    "no token": ({"DEBRIEF_RECORDER_URL": "http://localhost:1"}, "--scope write"),
    "another scheme": ({"DEBRIEF_RECORDER_URL": "ftp://x"}, "is no plain address"),
    "no host": ({"DEBRIEF_RECORDER_URL": "https://"}, "is no plain address"),
    "a password in it": ({"DEBRIEF_RECORDER_URL": "https://a:b@x"}, "a password is not taken"),
    "no port": ({"DEBRIEF_RECORDER_URL": "https://x:port"}, "is no address"),
    "a host with a space": ({"DEBRIEF_RECORDER_URL": "https://a b.org"}, "is no plain address"),
    "a host of dots": ({"DEBRIEF_RECORDER_URL": "https://..:1"}, "is no address"),
    "a host that is too long": ({"DEBRIEF_RECORDER_URL": f"http://{'a' * 99}.org"}, "is no addr"),
    "a host that no name has": ({"DEBRIEF_RECORDER_URL": "https://xn--ls8h.org"}, "is no address"),
    "a port that none is": ({"DEBRIEF_RECORDER_URL": "http://a.org:99999"}, "is no plain address"),
    "a token with a line end": (
        {"DEBRIEF_RECORDER_URL": "https://x", "DEBRIEF_RECORDER_TOKEN": "a\nb"},
        "is no token",
    ),
}


@pytest.mark.parametrize(("environment", "reason"), WRONG.values(), ids=WRONG)
def test_settings_that_are_missing_or_wrong_are_named(
    tmp_path: Path, environment: dict[str, str], reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason) as caught:
        client_of(load_settings({"DEBRIEF_HOME": str(tmp_path), **environment}), "write")
    assert "a:b" not in str(caught.value)


WAYS = {
    "certificates that are not there": ("SSL_CERT_FILE", "/nowhere", "No such file"),
    "a proxy of no kind": ("HTTPS_PROXY", "foo://me:hush-hush@bar", "names no proxy"),
    "a proxy that is no address": ("ALL_PROXY", "http://me:hush-hush@[::bad", "names no proxy"),
    "a proxy of another kind": ("ALL_PROXY", "socks5://me:hush-hush@bar:1", "names no proxy"),
}


@pytest.mark.parametrize(("name", "value", "reason"), WAYS.values(), ids=WAYS)
def test_a_way_to_the_server_that_is_none_is_named_by_its_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    for other in ("NO_PROXY", "no_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(other, raising=False)
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=reason) as caught:
        RecorderClient("https://records.example.org", "a-token")
    assert name in caught.value.culprit
    assert caught.value.next_move
    assert "hush-hush" not in str(caught.value)


def test_the_token_is_in_no_error(server: Records) -> None:
    server.answers = [(401, {}, b'{"reasons": ["the token is not known"]}')]
    with pytest.raises(DebriefError, match="DEBRIEF_RECORDER_TOKEN") as caught:
        server.client().send(TEXT, RECORD.meta)
    assert "a-token" not in str(caught.value)


def test_a_proxy_is_not_asked_for_this_machine(
    server: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.tasks.add(RECORD.meta.task_id)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with server.client() as client:
        assert client.send(TEXT, RECORD.meta).status == "draft"


EXPOSED = {
    "http://records.example.org": True,
    "https://records.example.org": False,
    "http://0.0.0.0:8484": True,
    "http://[::]:8484": True,
    "http://127.0.0.1:8484": False,
    "http://localhost:8484": False,
    "http://[::1]:8484": False,
}


@pytest.mark.parametrize(("url", "exposed"), EXPOSED.items())
def test_an_unencrypted_way_to_another_machine_is_told(
    tmp_path: Path, url: str, exposed: bool
) -> None:
    lines: list[str] = []
    with client_of(settings(tmp_path, url), "write", report=lines.append):
        assert [line.endswith("Use https.") for line in lines] == [True] * exposed


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

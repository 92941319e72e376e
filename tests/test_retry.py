"""Requests that fail for a while, for ever, or with a wait that the server asks for."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from debrief.retry import (
    RetryPolicy,
    WaitEndedError,
    current_wait,
    parse_retry_after,
    retry_after,
    retrying,
    wait,
    waits_end_with_it,
    waits_since,
)


class BusyError(Exception):
    def __init__(self, message: str = "busy\nmore", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Server:
    """Fails with each of ``errors`` in turn, then answers."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.requests = 0
        self.waits: list[float] = []
        self.lines: list[str] = []

    def send(self, text: str) -> str:
        self.requests += 1
        if self.errors:
            raise self.errors.pop(0)
        return text

    def ask(self, policy: RetryPolicy) -> str:
        retry = retrying(
            policy, lambda e: isinstance(e, BusyError), name="srv", report=self.lines.append
        )
        answer: str = retry(self.send, "hello")
        return answer

    def policy(self, **limits: float) -> RetryPolicy:
        return RetryPolicy(sleep=self.waits.append, **limits)  # type: ignore[arg-type]


def test_a_busy_server_is_asked_again_and_each_wait_is_reported_in_one_line() -> None:
    server = Server(BusyError(), BusyError())
    assert server.ask(server.policy(attempts=3)) == "hello"
    assert [line.rpartition(" in ")[0] for line in server.lines] == [
        "srv: busy; attempt 2",
        "srv: busy; attempt 3",
    ]


def test_waits_grow_at_random_up_to_the_longest() -> None:
    server = Server(*[BusyError()] * 200)
    server.ask(server.policy(first_wait=1, longest_wait=4))
    assert server.waits[0] <= 1
    assert server.waits[1] <= 2
    assert max(server.waits) <= 4
    assert len({round(wait, 3) for wait in server.waits[3:]}) > 10


@pytest.mark.parametrize(
    ("error", "limits", "requests"),
    [
        pytest.param(BusyError(), {"attempts": 4}, 4, id="attempts used up"),
        pytest.param(BusyError(), {"seconds": 0.0}, 1, id="time used up"),
        pytest.param(ValueError(), {"attempts": 4}, 1, id="not temporary"),
        pytest.param(BusyError(retry_after=301), {"attempts": 4}, 1, id="asks for too long a wait"),
    ],
)
def test_the_error_itself_is_raised_once_no_retry_is_left(
    error: Exception, limits: dict[str, float], requests: int
) -> None:
    server = Server(*[error] * 9)
    with pytest.raises(type(error)) as raised:
        server.ask(server.policy(**limits))
    assert raised.value is error
    assert server.requests == requests


def test_a_server_that_asks_for_a_wait_gets_it() -> None:
    server = Server(BusyError(retry_after=120))
    server.ask(server.policy(attempts=2, longest_wait=1))
    assert 120 <= server.waits[0] <= 121


def test_a_retry_after_header_counts_too() -> None:
    request = httpx.Request("GET", "https://example.org")
    response = httpx.Response(503, headers={"Retry-After": "7"}, request=request)
    assert retry_after(httpx.HTTPStatusError("busy", request=request, response=response)) == 7


def test_a_retry_after_is_a_number_or_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(minutes=5), usegmt=True)
    seconds = parse_retry_after(later)
    assert seconds is not None
    assert 200 <= seconds <= 300
    assert parse_retry_after("Thu, 01 Jan 1970 00:00:00 -0000") == 0
    assert parse_retry_after("30") == 30


@pytest.mark.parametrize("text", ["", "soon", "-1", "1e9", "nan"])
def test_anything_else_is_no_retry_after(text: str) -> None:
    assert parse_retry_after(text) is None


def test_a_wait_that_begins_after_its_work_was_stopped_ends_at_once() -> None:
    began = current_wait()
    with suppress(KeyboardInterrupt), waits_end_with_it():
        raise KeyboardInterrupt
    with waits_since(began), pytest.raises(WaitEndedError):
        wait(600)
    wait(0.01)  # the next work is not touched by it

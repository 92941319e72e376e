"""Retries of requests that may succeed later: one policy for models, servers, stores and databases.

retry = retrying(RetryPolicy(attempts=6), is_temporary=is_busy, name=url)
answer = retry(client.send, request)
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from threading import Condition, local
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from tenacity import RetryCallState, Retrying

_log = logging.getLogger("debrief.progress")


class _Waits:
    """Waits of threads, which all end when somebody stops what they wait for."""

    ended = 0
    """How often they were ended."""
    changed = Condition()


class _Thread(local):
    """Of each thread: as of when its waits may have been ended; None: as of their beginning."""

    began: int | None = None


_THREAD = _Thread()


class WaitEndedError(Exception):
    """Whoever waited is not needed any more."""


def current_wait() -> int:
    """Return what ``is_ended`` compares with."""
    return _Waits.ended if _THREAD.began is None else _THREAD.began


def is_ended(began: int) -> bool:
    """Return whether waits were ended since ``began``."""
    return _Waits.ended != began


def wait(seconds: float) -> None:
    """Sleep, unless waits are ended meanwhile.

    Raises:
        WaitEndedError: they were.
    """
    began = current_wait()
    with _Waits.changed:
        if _Waits.changed.wait_for(lambda: is_ended(began), seconds):
            raise WaitEndedError("stopped while waiting")


@contextmanager
def waits_since(began: int) -> Iterator[None]:
    """Have this thread's waits end at once when waits were ended since ``began``.

    A thread that works for others may come to its wait only after they were stopped.
    """
    before, _THREAD.began = _THREAD.began, began
    try:
        yield
    finally:
        _THREAD.began = before


@contextmanager
def waits_end_with_it() -> Iterator[None]:
    """End all waits of this process's threads when the block is left by Ctrl-C or an error.

    A pool of threads is not left before each of them is done, and a plan may be waited for
    for hours.
    """
    try:
        yield
    except BaseException:
        with _Waits.changed:
            _Waits.ended += 1
            _Waits.changed.notify_all()
        raise


TEMPORARY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Of HTTP, after which the same request may succeed later."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often and for how long a request is retried. All times are seconds.

    Whichever of ``attempts`` and ``seconds`` is reached first ends the retries.
    """

    attempts: int | None = None
    """Requests in all, the first included; None: as many as fit into ``seconds``."""
    seconds: float = 180.0
    """After this long since the first request no further one is sent."""
    first_wait: float = 1.0
    """The first wait is up to this long; each further one up to twice the one before. The length
    is random, so that many workers do not come back at the same moment."""
    longest_wait: float = 30.0
    """Between two requests, unless the server asks for more."""
    longest_retry_after: float = 300.0
    """A server that asks for a longer wait (``Retry-After``) is given up on at once."""
    sleep: Callable[[float], None] = wait


def retrying(
    policy: RetryPolicy,
    is_temporary: Callable[[BaseException], bool],
    *,
    name: str = "",
    describe: Callable[[BaseException], str] = lambda error: first_line(error),
    report: Callable[[str], None] = _log.warning,
) -> Retrying:
    """Return a callable that sends a request until it succeeds: ``retrying(…)(send, *args)``.

    The last request's error is raised unchanged when the policy is exhausted or the error is not
    temporary. A ``Retry-After`` is honoured when the error has an attribute ``retry_after`` in
    seconds or a ``response`` with headers, as ``httpx.HTTPStatusError`` has.

    Args:
        policy: how often and for how long.
        is_temporary: whether the same request may succeed later after this error.
        name: of the server or store, for the log line.
        describe: the error in a few words, for the log line.
        report: receives one line for each wait; by default the progress log.
    """
    import tenacity as t

    backoff = t.wait_random_exponential(multiplier=policy.first_wait, max=policy.longest_wait)

    def is_worth_a_retry(error: BaseException) -> bool:
        return is_temporary(error) and (retry_after(error) or 0) <= policy.longest_retry_after

    def pause(state: RetryCallState) -> float:
        least = retry_after(_error_of(state))
        if least is None:
            return float(backoff(state))
        return least + min(float(backoff(state)), policy.first_wait)

    def report_wait(state: RetryCallState) -> None:
        reason = describe(_error_of(state))
        next_attempt = f"attempt {state.attempt_number + 1} in {state.upcoming_sleep:.1f} s"
        report(": ".join(part for part in (name, f"{reason}; {next_attempt}") if part))

    limit = t.stop_never if policy.attempts is None else t.stop_after_attempt(policy.attempts)
    return t.Retrying(
        retry=t.retry_if_exception(is_worth_a_retry),
        stop=limit | t.stop_after_delay(policy.seconds),
        wait=pause,
        sleep=policy.sleep,
        before_sleep=report_wait,
        reraise=True,
    )


def retry_after(error: BaseException) -> float | None:
    """Return the seconds that a server asked to wait for; None if it did not."""
    seconds = getattr(error, "retry_after", None)
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    if seconds is None:
        seconds = parse_retry_after(headers.get("retry-after") or headers.get("Retry-After") or "")
    return seconds if isinstance(seconds, int | float) and 0 <= seconds < math.inf else None


def parse_retry_after(text: str) -> float | None:
    """Return the seconds that a ``Retry-After`` header means, a number or a date; None if neither.

    >>> parse_retry_after("30")
    30.0
    """
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its type if it has none."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _error_of(state: RetryCallState) -> BaseException:
    error = state.outcome.exception() if state.outcome is not None else None
    assert error is not None
    return error

"""Which failures of a call pass by themselves, and how long to wait for that."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_base, wait_random_exponential

if TYPE_CHECKING:
    from dspy.lm15 import LM15Error

T = TypeVar("T")

ATTEMPTS = 8
"""Times that one question is sent at most. With 27 % of calls failing, 4 lose one in two hundred
sessions and 8 none."""
PAUSE = 0.5
"""Seconds: the first pause is up to this, each one after it up to twice the one before."""
LONGEST_PAUSE = 60.0
PATIENCE = 300.0
"""Seconds. A server that asks to be left alone for longer is given up on for this run."""


def sent_until_answered(
    send: Callable[[], T], *, attempts: int = ATTEMPTS, pause: float = PAUSE
) -> T:
    """Send until there is an answer, a failure that stays, or no attempt left.

    Args:
        send: one attempt; raises what DSPy's engines raise.
        attempts: in all.
        pause: seconds; see ``PAUSE``.

    Raises:
        LM15Error: the last attempt's.
    """
    tries = Retrying(
        retry=retry_if_exception(is_passing),
        stop=stop_after_attempt(attempts),
        wait=_Wait(pause),
        reraise=True,
    )
    return tries(send)


def is_passing(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    Rate limits, server errors, time limits and broken connections pass, and so does a body that
    is no answer at all: a gateway's page under status 200, half a JSON, nothing. A missing key,
    an empty account, a wrong request and a prompt that is too long do not.
    """
    from dspy import lm15

    if isinstance(error, lm15.AuthError | lm15.BillingError | lm15.InvalidRequestError):
        return False
    if not isinstance(error, lm15.ProviderError | lm15.TransportError | lm15.LockTimeoutError):
        return False
    hint = asked_to_wait(error)
    return hint is None or hint <= PATIENCE


def asked_to_wait(error: LM15Error) -> float | None:
    """Return the seconds that a server asked for (``Retry-After``); None if it did not."""
    hint = error.retry_after
    return float(hint) if hint is not None and 0 <= hint < float("inf") else None


class _Wait(wait_base):
    """What the server asked for and a little more, else a growing pause, both with jitter."""

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._growing = wait_random_exponential(multiplier=pause, max=LONGEST_PAUSE)

    def __call__(self, retry_state: RetryCallState) -> float:
        outcome = retry_state.outcome
        error = outcome.exception() if outcome is not None else None
        hint = getattr(error, "retry_after", None)
        if hint is None:
            return float(self._growing(retry_state))
        return float(hint) + random.uniform(0, self._pause)

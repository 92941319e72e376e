---
title: Stop calling a carrier that is down
tool: droid
repository: parcel-api
prompts: v3
at: 2026-11-05 10:15:44
---
==> user
Last item of the plan: a circuit breaker around CarrierClient._send, new file parcels/carriers/breaker.py.

Behaviour
- opens after 5 CarrierUnavailable in a row (after retries), then every call raises CarrierUnavailable at once for 30 s
- after that one call may try; success closes it, failure opens it for another 30 s
- RateLimited does not count as a failure

Constraints: no threads, no new dependency, the clock is injected (Callable[[], float]). Acceptance: tests/test_breaker.py covers opening, half-open success, half-open failure, and RateLimited. Please run pytest and ruff and show the last lines.
==> say
Done means: five failures open it, nothing is sent for 30 s, then one trial decides; rate limits never open it. tests/test_breaker.py will check the four cases with a clock of its own.
==> todo
[>] Read client and errors
[ ] Tests for the four cases
[ ] Breaker
[ ] Wire it into the client
==> read parcels/carriers/client.py
==> +read parcels/carriers/errors.py
==> write tests/test_breaker.py
import pytest

from parcels.carriers.breaker import Breaker
from parcels.carriers.errors import CarrierUnavailable, RateLimited


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Line:
    """A line to a carrier that fails while it is down."""

    def __init__(self) -> None:
        self.down = True
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.down:
            raise CarrierUnavailable("northpost", "server error", 503)
        return "ok"


def opened() -> tuple[Breaker, Line, Clock]:
    clock, line = Clock(), Line()
    breaker = Breaker("northpost", clock)
    for _ in range(5):
        with pytest.raises(CarrierUnavailable):
            breaker.call(line)
    return breaker, line, clock


def test_five_failures_open_it():
    breaker, line, clock = opened()
    clock.now = 29.9
    with pytest.raises(CarrierUnavailable, match="not asked"):
        breaker.call(line)
    assert line.calls == 5


def test_a_successful_trial_closes_it():
    breaker, line, clock = opened()
    clock.now, line.down = 30.0, False
    assert breaker.call(line) == "ok"
    assert breaker.call(line) == "ok"


def test_a_failed_trial_opens_it_again():
    breaker, line, clock = opened()
    clock.now = 30.0
    with pytest.raises(CarrierUnavailable, match="server error"):
        breaker.call(line)
    clock.now = 59.9
    with pytest.raises(CarrierUnavailable, match="not asked"):
        breaker.call(line)
    assert line.calls == 6


def test_rate_limits_do_not_count():
    breaker, clock = None, Clock()
    breaker = Breaker("northpost", clock)

    def limited() -> str:
        raise RateLimited("northpost", 60)

    for _ in range(20):
        with pytest.raises(RateLimited):
            breaker.call(limited)
==> tests pytest tests/test_breaker.py -q
ok tests/test_breaker.py 0
bad tests/test_breaker.py::collection
E   ModuleNotFoundError: No module named 'parcels.carriers.breaker'
==> write parcels/carriers/breaker.py
"""Stops calling a carrier that is down, so that requests fail at once instead of slowly."""

from collections.abc import Callable
from typing import TypeVar

from parcels.carriers.errors import CarrierUnavailable, RateLimited

FAILURES = 5
REST = 30.0
T = TypeVar("T")


class Breaker:
    def __init__(self, carrier: str, clock: Callable[[], float]) -> None:
        self._carrier = carrier
        self._clock = clock
        self._failures = 0
        self._closed_until = 0.0

    def call(self, send: Callable[[], T]) -> T:
        """Call ``send``, unless the carrier has failed too often of late."""
        if self._failures >= FAILURES and self._clock() < self._closed_until:
            raise CarrierUnavailable(self._carrier, "not asked: it was down a moment ago")
        try:
            answer = send()
        except RateLimited:
            raise
        except CarrierUnavailable:
            self._failures += 1
            self._closed_until = self._clock() + REST
            raise
        self._failures = 0
        return answer
==> tests pytest tests/test_breaker.py -q
ok tests/test_breaker.py 4
==> edit parcels/carriers/client.py
         self.name = name
         self._sleep = sleep
+        self._breaker = Breaker(name, clock)
==> edit parcels/carriers/client.py
         sleep: Callable[[float], None] = time.sleep,
+        clock: Callable[[], float] = time.monotonic,
     ) -> None:
==> edit parcels/carriers/client.py
     def _send(self, method: str, path: str, **kwargs) -> httpx.Response:
+        return self._breaker.call(lambda: self._repeated(method, path, **kwargs))
+
+    def _repeated(self, method: str, path: str, **kwargs) -> httpx.Response:
==> edit parcels/carriers/client.py
+from parcels.carriers.breaker import Breaker
 from parcels.carriers.errors import (
==> tests pytest -q
ok tests/test_api.py 1
ok tests/test_breaker.py 4
ok tests/test_client.py 10
ok tests/test_settings.py 5
ok tests/test_tracking.py 4
==> run ruff check parcels tests
All checks passed!
==> todo
[x] Read client and errors
[x] Tests for the four cases
[x] Breaker
[x] Wire it into the client
==> say
Each point and where it is:

- opens after five, rests 30 s: `Breaker.call`, `test_five_failures_open_it`
- one trial afterwards: `test_a_successful_trial_closes_it`, `test_a_failed_trial_opens_it_again`
- rate limits do not count: `test_rate_limits_do_not_count`
- no threads, no dependency, clock injected; the client counts after its retries (`_send` → `_repeated`)

pytest: "24 passed"; ruff: "All checks passed!".
==> user
lovely. that closes the plan
==> say
Thanks.

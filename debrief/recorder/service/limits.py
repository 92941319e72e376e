"""How much the service takes, and from whom: all its numbers, and what counts against them."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from msgspec import Struct

from debrief.recorder.encoding import MAX_BYTES
from debrief.recorder.storage.rows import Token


class Limits(Struct, frozen=True, kw_only=True):
    """Every number that bounds a client. Times are in seconds, sizes in bytes."""

    body: int = MAX_BYTES
    """The longest body."""
    small_body: int = 65_536
    """The longest body of everything that is no record."""
    bodies: int = 256_000_000
    """All bodies that are being taken at once."""
    head: int = 16_384
    """The request line and all headers together."""
    connections: int = 512
    """Open connections; above it, the one that has kept us waiting longest is closed."""
    head_seconds: float = 10.0
    """From the first moment of a connection or request to the end of its head."""
    body_grace: float = 10.0
    """How long a body may take however slow it is."""
    body_rate: int = 32_768
    """Bytes a second that a body has to come at, over all of it, after the grace."""
    idle_seconds: int = 15
    """How long a connection is kept between requests."""
    stalled_seconds: float = 300.0
    """How long a client may take no bytes of an answer, and by how much it may fall behind.

    Its machine holds megabytes that it has not read, and asks for more only when part of them is
    gone: whoever keeps to the rate below seems to take nothing for up to three minutes."""
    answer_rate: int = 32_768
    """Bytes a second that a client has to take an answer at, where it keeps us waiting."""
    request_seconds: float = 60.0
    """The longest that any request but an export may take, once its body is here."""
    health_seconds: float = 3.0
    """How long the database may take to show that it is there."""
    stop_seconds: int = 30
    """How long running requests are waited for at the end."""
    threads: int = 8
    """Requests that work with the database at once."""
    waiting: int = 256
    """Requests that may wait for their turn with it."""
    exports: int = 4
    """Exports that may run at once."""
    requests_a_second: float = 400.0
    """Of one token, over time."""
    burst: int = 4_000
    """Of one token, at once."""


class Allowance(Struct, frozen=True):
    """Whether a request may go on."""

    granted: bool
    retry_after: int = 0
    """Whole seconds until it may."""


class Buckets:
    """A bucket of requests for each token, filled at a steady rate.

    Holds no more than ``most`` buckets: the one that was used longest ago is full again, or close
    to it, so that it can be forgotten.
    """

    def __init__(
        self, rate: float, burst: int, now: Callable[[], float] = monotonic, most: int = 10_000
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._now = now
        self._most = most
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> Allowance:
        """Take one request out of a token's bucket."""
        now = self._now()
        level, then = self._levels.pop(name, (float(self._burst), now))
        level = min(float(self._burst), level + (now - then) * self._rate)
        granted = level >= 1
        self._levels[name] = (level - 1 if granted else level, now)
        if len(self._levels) > self._most:
            self._levels.popitem(last=False)
        if granted:
            return Allowance(True)
        return Allowance(False, max(1, math.ceil((1 - level) / self._rate)))


class Admitted:
    """Tokens that were good a moment ago: whose bodies are taken before they are looked up again.

    It decides nothing but that. What a body brings is stored, and its refusal told, only where
    the token is found good at that time, so that a revoked one ends with its next request.

    Args:
        seconds: how long a token is known.
        now: a clock.
        most: how many are known at once.
    """

    def __init__(
        self, seconds: float = 30.0, now: Callable[[], float] = monotonic, most: int = 10_000
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._most = most
        self._known: OrderedDict[str, tuple[Token, float]] = OrderedDict()

    def find(self, digest: str) -> Token | None:
        """Return the token of a digest, if it is known."""
        token, until = self._known.get(digest, (None, 0.0))
        return token if self._now() < until else None

    def keep(self, digest: str, token: Token) -> None:
        """Know a token that was found good."""
        self._known.pop(digest, None)
        self._known[digest] = (token, self._now() + self._seconds)
        if len(self._known) > self._most:
            self._known.popitem(last=False)

    def forget(self, digest: str) -> None:
        """Know a token no longer."""
        self._known.pop(digest, None)


class Room:
    """A number of places (or bytes) that are taken and given back; it never waits."""

    def __init__(self, size: int) -> None:
        self.free = size

    def take(self, size: int = 1) -> bool:
        """Take places if there are as many."""
        if size > self.free:
            return False
        self.free -= size
        return True

    def give_back(self, size: int = 1) -> None:
        """Give places back."""
        self.free += size

    @contextmanager
    def held(self, size: int = 1) -> Iterator[bool]:
        """Hold places for the length of a block, which is told whether there were any."""
        taken = self.take(size)
        try:
            yield taken
        finally:
            if taken:
                self.give_back(size)

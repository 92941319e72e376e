"""What calls of language models came to: tokens, money, and how many there were."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from msgspec import Struct, structs


class Usage(Struct, frozen=True, kw_only=True):
    """The tokens and the cost of one call, or of several added up."""

    input_tokens: int = 0
    """Of the whole prompt, whatever part of it the provider had in its cache."""
    output_tokens: int = 0
    """Of the whole answer, thinking included."""
    cache_read_tokens: int = 0
    """Of the input: read from the provider's prompt cache."""
    cache_write_tokens: int = 0
    """Of the input: written to the provider's prompt cache."""
    cost_usd: float | None = None
    """None when a price is not known; 0 only when nothing was spent."""


class Spent(Struct, frozen=True, kw_only=True):
    """What a run took of one model, or of all."""

    calls: int = 0
    """Questions that went out, each counted once however often it had to be sent."""
    sent: int = 0
    """Requests, those included that failed and were sent again."""
    recalled: int = 0
    """Questions that the cache answered."""
    usage: Usage = Usage(cost_usd=0.0)


def total(usages: Iterable[Usage]) -> Usage:
    """Add up; the cost is None as soon as one is not known, and 0 for no call at all."""
    found = list(usages)
    costs = [usage.cost_usd for usage in found]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        input_tokens=sum(usage.input_tokens for usage in found),
        output_tokens=sum(usage.output_tokens for usage in found),
        cache_read_tokens=sum(usage.cache_read_tokens for usage in found),
        cache_write_tokens=sum(usage.cache_write_tokens for usage in found),
        cost_usd=sum(known) if len(known) == len(costs) else None,
    )


def all_spent(parts: Iterable[Spent]) -> Spent:
    """Add up what several models took."""
    found = list(parts)
    return Spent(
        calls=sum(part.calls for part in found),
        sent=sum(part.sent for part in found),
        recalled=sum(part.recalled for part in found),
        usage=total(part.usage for part in found),
    )


def spent_since(before: Spent, now: Spent) -> Spent:
    """Return what was taken between two looks at the same count."""
    one, other = now.usage, before.usage
    known = one.cost_usd is not None and other.cost_usd is not None
    return Spent(
        calls=now.calls - before.calls,
        sent=now.sent - before.sent,
        recalled=now.recalled - before.recalled,
        usage=Usage(
            input_tokens=one.input_tokens - other.input_tokens,
            output_tokens=one.output_tokens - other.output_tokens,
            cache_read_tokens=one.cache_read_tokens - other.cache_read_tokens,
            cache_write_tokens=one.cache_write_tokens - other.cache_write_tokens,
            cost_usd=(one.cost_usd or 0.0) - (other.cost_usd or 0.0) if known else None,
        ),
    )


class Meter:
    """Counts what is taken of a model; shared by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._spent = Spent()

    @property
    def spent(self) -> Spent:
        """Return what was counted so far."""
        with self._lock:
            return self._spent

    def sent(self) -> None:
        """Count a request."""
        with self._lock:
            self._spent = structs.replace(self._spent, sent=self._spent.sent + 1)

    def recalled(self) -> None:
        """Count a question that the cache answered."""
        with self._lock:
            self._spent = structs.replace(self._spent, recalled=self._spent.recalled + 1)

    def answered(self, usage: Usage) -> None:
        """Count a question that the model answered."""
        with self._lock:
            self._spent = structs.replace(
                self._spent,
                calls=self._spent.calls + 1,
                usage=total((self._spent.usage, usage)),
            )

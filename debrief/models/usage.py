"""What calls of language models took: tokens, money, and how many there were."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, Self

from msgspec import Struct


class _Amounts(Struct, frozen=True, kw_only=True):
    """Amounts that add up field by field; what one side does not know is None in the result."""

    def __add__(self, other: Self) -> Self:
        return self._combined(operator.add, other)

    def __sub__(self, other: Self) -> Self:
        return self._combined(operator.sub, other)

    def _combined(self, combine: Callable[[Any, Any], Any], other: Self) -> Self:
        fields = {
            name: (getattr(self, name), getattr(other, name)) for name in self.__struct_fields__
        }
        return type(self)(
            **{name: None if None in pair else combine(*pair) for name, pair in fields.items()}
        )


class ModelUsage(_Amounts, frozen=True, kw_only=True):
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

    def columns(self) -> dict[str, Any]:
        """Return the columns that a row has of it."""
        return {name: getattr(self, name) for name in ("input_tokens", "output_tokens", "cost_usd")}


class RunUsage(_Amounts, frozen=True, kw_only=True):
    """What a run took of one model, or of all."""

    calls: int = 0
    """Questions that went out, each counted once however often it had to be sent."""
    sent: int = 0
    """Requests, those included that failed and were sent again."""
    recalled: int = 0
    """Questions that the cache answered."""
    usage: ModelUsage = ModelUsage(cost_usd=0.0)


def total(usages: Iterable[ModelUsage]) -> ModelUsage:
    """Add up; the cost is None as soon as one is not known, and 0 for no call at all."""
    return sum(usages, ModelUsage(cost_usd=0.0))


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum in US dollars; None as soon as one of them is not known."""
    return total(ModelUsage(cost_usd=cost) for cost in costs).cost_usd


class Meter:
    """Counts what is taken of a model; shared by threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.spent = RunUsage()

    def count(
        self, *, calls: int = 0, sent: int = 0, recalled: int = 0, usage: ModelUsage | None = None
    ) -> None:
        """Add to what was counted so far."""
        usage = usage or ModelUsage(cost_usd=0.0)
        with self._lock:
            self.spent += RunUsage(calls=calls, sent=sent, recalled=recalled, usage=usage)

"""What calls of language models took: tokens, money, and how many there were."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from threading import Lock
from typing import Any, TypeVar

from msgspec import Struct

Amounts = TypeVar("Amounts", bound=Struct)


class ModelUsage(Struct, frozen=True, kw_only=True):
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

    def __add__(self, other: ModelUsage) -> ModelUsage:
        return _field_by_field(operator.add, self, other)

    def __sub__(self, other: ModelUsage) -> ModelUsage:
        return _field_by_field(operator.sub, self, other)


class RunUsage(Struct, frozen=True, kw_only=True):
    """What a run took of one model, or of all."""

    calls: int = 0
    """Questions that went out, each counted once however often it had to be sent."""
    sent: int = 0
    """Requests, those included that failed and were sent again."""
    recalled: int = 0
    """Questions that the cache answered."""
    usage: ModelUsage = ModelUsage(cost_usd=0.0)

    def __add__(self, other: RunUsage) -> RunUsage:
        return _field_by_field(operator.add, self, other)

    def __sub__(self, other: RunUsage) -> RunUsage:
        return _field_by_field(operator.sub, self, other)


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


def _field_by_field(combine: Callable[[Any, Any], Any], one: Amounts, other: Amounts) -> Amounts:
    """Combine two amounts; a field that one of them does not know is None."""
    pairs = {name: (getattr(one, name), getattr(other, name)) for name in one.__struct_fields__}
    return type(one)(
        **{name: None if None in pair else combine(*pair) for name, pair in pairs.items()}
    )

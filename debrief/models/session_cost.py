"""What a session's own calls of its model cost, by list prices."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from debrief.models.usage import ModelUsage, Price, price_of, total_cost
from debrief.sessions.model import Message, Usage


class Prices:
    """The prices of models, each looked up once.

    Args:
        own: a file of one's own prices, which comes before what is known of models.
    """

    def __init__(self, own: Path) -> None:
        self._own = own
        self._known: dict[str, Price | None] = {}

    def of(self, model: str) -> Price | None:
        """Return a model's price; None when it is not known."""
        if model not in self._known:
            self._known[model] = price_of(model, self._own)
        return self._known[model]


def message_cost(message: Message, price: Price | None) -> float | None:
    """Return what one message cost in USD; None when its price is not known."""
    usage = message.usage
    if usage == Usage():
        return 0.0
    if price is None:
        return None
    return price.cost(
        ModelUsage(
            input_tokens=usage.input + usage.cache_write + usage.cache_read,
            output_tokens=usage.output,
            cache_read_tokens=usage.cache_read,
            cache_write_tokens=usage.cache_write,
        )
    )


def messages_cost(messages: Iterable[Message], prices: Prices) -> float | None:
    """Return what messages cost together, in USD; None when a price is not known, or when they
    count no tokens at all."""
    counted = [message for message in messages if message.usage != Usage()]
    if not counted:
        return None
    return total_cost(message_cost(message, prices.of(message.model)) for message in counted)

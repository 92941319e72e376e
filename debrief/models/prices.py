"""What models cost, as far as it is known: a file of one's own, else LiteLLM's packaged table.

A price that nobody knows is None and stays None in every sum: a run that looks free because its
model is new misleads more than one without a figure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Struct

from debrief.errors import ConfigurationError
from debrief.models.usage import ModelUsage

_MILLION = 1_000_000
_TABLE = "model_prices_and_context_window_backup.json"
_TIER = re.compile(r"input_cost_per_token_above_(\d+)k_tokens\Z")


class Rates(Struct, frozen=True):
    """USD for one token of each kind."""

    input: float
    output: float
    cache_read: float
    cache_write: float


class Price(Struct, frozen=True, kw_only=True):
    """What a model costs."""

    rates: Rates
    tiers: tuple[tuple[int, Rates], ...] = ()
    """For prompts of more than so many tokens, the longest first."""

    def cost(self, usage: ModelUsage) -> float:
        """Return what ``usage`` costs, in USD."""
        tiered = (rates for above, rates in self.tiers if usage.input_tokens > above)
        rates = next(tiered, self.rates)
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        return (
            max(usage.input_tokens - cached, 0) * rates.input
            + usage.cache_read_tokens * rates.cache_read
            + usage.cache_write_tokens * rates.cache_write
            + usage.output_tokens * rates.output
        )


_Amount = Annotated[float, msgspec.Meta(ge=0)]


class _OwnPrice(Struct, frozen=True, forbid_unknown_fields=True):
    """USD a million tokens."""

    input: _Amount
    output: _Amount
    cache_read: _Amount | None = None
    cache_write: _Amount | None = None


def price_of(model: str, own: Path, *, packaged: bool = True) -> Price | None:
    """Return the price of a model; None when it is not known.

    Args:
        model: LiteLLM's name of it.
        own: a JSON file ``{"<model>": {"input": 0.2, "output": 0.5}}`` in USD a million tokens,
            with ``cache_read`` and ``cache_write`` where they differ from ``input``. It need not
            be there, and wins over the packaged table.
        packaged: look into LiteLLM's table too: right where its provider is asked, wrong where a
            server of one's own answers under a provider's name.

    Raises:
        ConfigurationError: the file is no such table.
    """
    found = own_prices(own).get(model)
    if found is not None or not packaged:
        return found
    entry = _entry(model)
    return _packaged(entry) if entry else None


def context_window(model: str) -> int | None:
    """Return how many tokens of a prompt a model takes; None when it is not known."""
    tokens = (_entry(model) or {}).get("max_input_tokens")
    return tokens if isinstance(tokens, int) and tokens > 0 else None


def own_prices(path: Path) -> dict[str, Price]:
    """Read a price file; nothing when it is not there."""
    if not path.is_file():
        return {}
    try:
        prices = msgspec.json.decode(path.read_bytes(), type=dict[str, _OwnPrice])
    except msgspec.DecodeError as error:
        raise ConfigurationError(
            str(path),
            str(error),
            'Write {"<model>": {"input": 0.2, "output": 0.5}}, in USD a million tokens.',
        ) from error
    return {name: _own_price(price) for name, price in prices.items()}


def _own_price(own: _OwnPrice) -> Price:
    read = own.input if own.cache_read is None else own.cache_read
    written = own.input if own.cache_write is None else own.cache_write
    amounts = (amount / _MILLION for amount in (own.input, own.output, read, written))
    return Price(rates=Rates(*amounts))


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    """Read the table out of LiteLLM's wheel without importing LiteLLM, which takes seconds."""
    spec = find_spec("litellm")
    folder = Path(spec.origin or "").parent if spec else Path()
    path = folder / _TABLE
    return (
        msgspec.json.decode(path.read_bytes(), type=dict[str, dict[str, Any]])
        if path.is_file()
        else {}
    )


def _entry(model: str) -> Mapping[str, Any] | None:
    provider, _, bare = model.rpartition("/") if model.count("/") == 1 else ("", "", model)
    if model in _table():
        return _table()[model]
    found = _table().get(bare)
    return found if found and found.get("litellm_provider") == provider else None


def _packaged(entry: Mapping[str, Any]) -> Price | None:
    rates = _rates(entry, "")
    if rates is None:
        return None
    tiers = [
        (int(found[1]) * 1000, above)
        for found in filter(None, map(_TIER.match, entry))
        if (above := _rates(entry, f"_above_{found[1]}k_tokens")) is not None
    ]
    return Price(rates=rates, tiers=tuple(sorted(tiers, key=lambda tier: -tier[0])))


def _rates(entry: Mapping[str, Any], suffix: str) -> Rates | None:
    def rate(key: str) -> float | None:
        value = entry.get(key + suffix, entry.get(key))
        return float(value) if isinstance(value, int | float) and value >= 0 else None

    read, written = rate("cache_read_input_token_cost"), rate("cache_creation_input_token_cost")
    inputs, outputs = rate("input_cost_per_token"), rate("output_cost_per_token")
    if inputs is None or outputs is None:
        return None
    return Rates(
        input=inputs,
        output=outputs,
        cache_read=inputs if read is None else read,
        cache_write=inputs if written is None else written,
    )

"""Tokens and cost of model calls, prices, and the spending limits of a run.

A price comes out of a file of one's own, else out of ``_LIST_PRICES`` here or LiteLLM's packaged
table. One that nobody knows is None and stays None in every sum: a run that looks free because its
model is new misleads more than one without a figure.

What a call is likely to cost is set aside before it goes out and settled by what it took, so
threads and processes that share a run cannot together spend what only one of them may; the limit
is passed at most by what the calls under way take beyond the guess. Those are waited for and
kept; the ones after them are refused with an error that a stage records, and the next run goes on
from there.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Self
from uuid import uuid4

import msgspec
from msgspec import Struct, structs

from debrief.errors import ConfigurationError, ModelError

if TYPE_CHECKING:
    from debrief.state import State


class _Amounts(Struct, frozen=True, kw_only=True):
    """Amounts that add up field by field; what one side does not know is None in the result."""

    def __add__(self, other: Self) -> Self:
        return self._combined(operator.add, other)

    def __sub__(self, other: Self) -> Self:
        return self._combined(operator.sub, other)

    def _combined(self, combine: Callable[[Any, Any], Any], other: Self) -> Self:
        pairs = zip(structs.astuple(self), structs.astuple(other), strict=True)
        amounts = (None if None in pair else combine(*pair) for pair in pairs)
        return type(self)(**dict(zip(self.__struct_fields__, amounts, strict=True)))


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


_MOST_TOKENS = 1 << 53


def count_of(value: object) -> int | None:
    """Return a count of tokens as a provider gives it; None for what is no number of them.

    >>> count_of("12"), count_of(12.0), count_of("many"), count_of(-1)
    (12, 12, None, None)
    """
    number = number_of(value)
    return None if number is None or number >= _MOST_TOKENS else int(number)


def number_of(value: object) -> float | None:
    """Return a number of 0 or more, a text included that is one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if 0 <= number < math.inf else None


def total(usages: Iterable[ModelUsage]) -> ModelUsage:
    """Add up; the cost is None as soon as one is not known, and 0 for no call at all."""
    return sum(usages, ModelUsage(cost_usd=0.0))


def total_cost(costs: Iterable[float | None]) -> float | None:
    """Return the sum in US dollars; None as soon as one of them is not known."""
    return total(ModelUsage(cost_usd=cost) for cost in costs).cost_usd


class Meter:
    """Counts what is taken of a model; shared by threads.

    Args:
        whole: counts the same beside what others count.
    """

    def __init__(self, whole: Meter | None = None) -> None:
        self._lock = Lock()
        self._whole = whole
        self.spent = RunUsage()

    def count(self, **taken: Any) -> None:
        """Add to what was counted so far, by the fields of ``RunUsage``."""
        with self._lock:
            self.spent += RunUsage(**taken)
        if self._whole is not None:
            self._whole.count(**taken)


ASKED_HERE = Meter()
"""What this process asked of all models, for whoever watches."""


_MILLION = 1_000_000
_TABLE = "model_prices_and_context_window_backup.json"
_AMOUNTS = (
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
)
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

    def rates(self) -> Rates:
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        return Rates(*(each / _MILLION for each in (self.input, self.output, read, written)))


_LIST_PRICES = {
    "openrouter/x-ai/grok-4.1-fast": _OwnPrice(input=0.20, output=0.50, cache_read=0.05),
}
"""Prices that LiteLLM's table lacks of models that the shipped judges name. Source: xAI's list
prices (docs.x.ai/docs/models), as of 2026-07-20; OpenRouter passes list prices on."""

PRICES_FORM = '{"<model>": {"input": 0.2, "output": 0.5}}, in USD a million tokens'
"""What a file of one's own prices holds."""


def price_of(model: str, own: Path, *, packaged: bool = True) -> Price | None:
    """Return the price of a model; None when it is not known.

    Args:
        model: LiteLLM's name of it.
        own: a JSON file ``{"<model>": {"input": 0.2, "output": 0.5}}`` in USD a million tokens,
            with ``cache_read`` and ``cache_write`` where they differ from ``input``. It need not
            be there, and wins over the packaged table.
        packaged: look into the packaged tables too: right where its provider is asked, wrong where
            a server of one's own answers under a provider's name.

    Raises:
        ConfigurationError: the file is no such table.
    """
    found = own_prices(own).get(model)
    if found is not None or not packaged:
        return found
    listed = _LIST_PRICES.get(model)
    return Price(rates=listed.rates()) if listed else _packaged(_entry(model) or {})


def context_window(model: str) -> int | None:
    """Return how many tokens of a prompt a model takes; None when it is not known."""
    return _tokens(model, "max_input_tokens")


def longest_answer(model: str) -> int | None:
    """Return how many tokens of an answer a model gives; None when it is not known."""
    return _tokens(model, "max_output_tokens")


def _tokens(model: str, field: str) -> int | None:
    tokens = (_entry(model) or {}).get(field)
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
            f"Write {PRICES_FORM}.",
        ) from error
    return {name: Price(rates=price.rates()) for name, price in prices.items()}


def is_listed(model: str) -> bool:
    """Return whether LiteLLM's packaged table has a model."""
    return model in _table()


def providers() -> frozenset[str]:
    """Return the providers of the packaged table."""
    return frozenset(str(entry.get("litellm_provider")) for entry in _table().values())


@lru_cache(maxsize=1)
def _table() -> dict[str, dict[str, Any]]:
    """Read the table out of LiteLLM's wheel without importing LiteLLM, which takes seconds."""
    spec = find_spec("litellm")
    path = Path((spec and spec.origin) or "litellm").with_name(_TABLE)
    data = path.read_bytes() if path.is_file() else b"{}"
    return msgspec.json.decode(data, type=dict[str, dict[str, Any]])


def _entry(model: str) -> Mapping[str, Any] | None:
    provider, _, bare = model.rpartition("/") if model.count("/") == 1 else ("", "", model)
    if model in _table():
        return _table()[model]
    found = _table().get(bare)
    return found if found and found.get("litellm_provider") == provider else None


def _packaged(entry: Mapping[str, Any]) -> Price | None:
    rates = _packaged_rates(entry, "")
    tiers = [
        (int(found[1]) * 1000, above)
        for found in filter(None, map(_TIER.match, entry))
        if (above := _packaged_rates(entry, f"_above_{found[1]}k_tokens")) is not None
    ]
    tiers.sort(key=lambda tier: -tier[0])
    return None if rates is None else Price(rates=rates, tiers=tuple(tiers))


def _packaged_rates(entry: Mapping[str, Any], suffix: str) -> Rates | None:
    amounts = (entry.get(key + suffix, entry.get(key)) for key in _AMOUNTS)
    known = [
        amount if isinstance(amount, int | float) and amount >= 0 else None for amount in amounts
    ]
    inputs, outputs, *cached = known
    if inputs is None or outputs is None:
        return None
    return Rates(inputs, outputs, *(inputs if each is None else each for each in cached))


_LETTERS_A_TOKEN = 3
_USUAL_ANSWER = 800


BUDGET = "the run's budget"
"""The culprit of a ``BudgetSpentError``."""


class BudgetSpentError(ModelError):
    """A run may ask no more; nothing is wrong with the question or the model."""


class Bill(Struct):
    """What one call may take, and what it took."""

    reserved: float
    taken: float | None = 0.0
    """USD; None when an answer came without a word on its usage, and the guess stands."""
    counts: bool = True
    """False for a prompt refused as too long: nothing was read, and a shorter one is asked."""


class Budget:
    """The limits of one run; shared by all its threads, and by its processes through the
    state.

    Args:
        max_cost_usd: at most so much money; None without limit.
        max_calls: at most so many calls; None without limit.
        run: names the run, so that all its processes share the limits.
        prices: the file of one's own prices, for messages.
        state: where it is written down; this process's memory by default.
    """

    def __init__(
        self,
        *,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
        run: str = "",
        prices: Path | None = None,
        state: State | None = None,
    ) -> None:
        for name, limit in (("max_cost_usd", max_cost_usd), ("max_calls", max_calls)):
            if limit is not None and not limit >= 0:
                raise ConfigurationError(name, f"{limit} is no limit", "Give a number from 0 up.")
        self.max_cost_usd = max_cost_usd
        self.max_calls = max_calls
        self.run = run or uuid4().hex
        self._prices = prices
        self._state: State | None = None
        """Where it is written down; None without any limit."""
        if max_cost_usd is not None or max_calls is not None:
            from debrief.state import State

            self._state = (state if run else None) or State(None)

    def check(self, model: str, price: Price | None) -> None:
        """Refuse a limit in money on a model without a price: nobody could keep it.

        Raises:
            ConfigurationError: there is such a limit and no price.
        """
        if self.max_cost_usd is not None and price is None:
            raise ConfigurationError(
                model,
                "its price is not known, so max_cost_usd cannot be kept",
                f"Add it to {self._prices or 'prices.json'}: "
                f"{PRICES_FORM.replace('<model>', model)}; or limit DEBRIEF_MAX_CALLS instead.",
            )

    @contextmanager
    def call(self, letters: int, price: Price | None) -> Iterator[Bill]:
        """Set one call aside; the caller writes into the bill what it took.

        Args:
            letters: how long the prompt is.
            price: of the model.

        Raises:
            BudgetSpentError: there is no room for it.
        """
        if self._state is None:
            yield Bill(0.0)
            return
        guess = ModelUsage(input_tokens=letters // _LETTERS_A_TOKEN, output_tokens=_USUAL_ANSWER)
        bill = Bill(price.cost(guess) if price is not None else 0.0)
        if not self._state.reserve(
            self.run, bill.reserved, max_calls=self.max_calls, max_usd=self.max_cost_usd
        ):
            raise self._spent(self._state)
        try:
            yield bill
        finally:
            taken = bill.reserved if bill.taken is None else bill.taken
            self._state.settle(self.run, taken - bill.reserved, calls=bill.counts - 1)

    def _spent(self, state: State) -> BudgetSpentError:
        calls, usd = state.spent(self.run)
        if self.max_calls is not None and calls >= self.max_calls:
            reason = f"max_calls is reached: {calls} of {self.max_calls}"
        else:
            reason = (
                f"max_cost_usd is reached: ${usd:.4f} of ${self.max_cost_usd:.4f} "
                f"spent or set aside for {calls} calls"
            )
        return BudgetSpentError(BUDGET, reason, "The next run goes on from here.")

"""Limits of a run: so much money, so many calls, and then no new one.

What a call is likely to cost is set aside before it goes out and settled by what it took, so
threads and processes that share a run cannot together spend what only one of them may; the limit
is passed at most by what the calls under way take beyond the guess. Those are waited for and
kept; the ones after them are refused with an error that a stage records, and the next run goes on
from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from debrief.errors import ConfigurationError, ModelError
from debrief.models.prices import Price
from debrief.models.usage import ModelUsage
from debrief.state.store import State

_LETTERS_A_TOKEN = 3
_USUAL_ANSWER = 800


class BudgetSpentError(ModelError):
    """A run may ask no more; nothing is wrong with the question or the model."""


class Bill:
    """What one call may take, and what it took."""

    def __init__(self, reserved: float) -> None:
        self.reserved = reserved
        self.taken: float | None = 0.0
        """USD; None when an answer came without a word on its usage, and the guess stands."""


class Budget:
    """The limits of one run; shared by all its threads, and by its processes through the
    state.

    Args:
        max_cost_usd: at most so much money; None without limit.
        max_calls: at most so many calls; None without limit.
        run: names the run, so that all its processes share the limits.
        state: where it is written down; this process's memory by default.
    """

    def __init__(
        self,
        *,
        max_cost_usd: float | None = None,
        max_calls: int | None = None,
        run: str = "",
        state: State | None = None,
    ) -> None:
        for name, limit in (("max_cost_usd", max_cost_usd), ("max_calls", max_calls)):
            if limit is not None and not limit >= 0:
                raise ConfigurationError(name, f"{limit} is no limit", "Give a number from 0 up.")
        self.max_cost_usd = max_cost_usd
        self.max_calls = max_calls
        self._run = run or uuid4().hex
        shared = state if run else None
        self._state = shared or (State(None) if self.limited else None)

    @property
    def limited(self) -> bool:
        """Return whether there is any limit."""
        return self.max_cost_usd is not None or self.max_calls is not None

    def check(self, model: str, price: Price | None) -> None:
        """Refuse a limit in money on a model without a price: nobody could keep it.

        Raises:
            ConfigurationError: there is such a limit and no price.
        """
        if self.max_cost_usd is not None and price is None:
            raise ConfigurationError(
                model,
                "its price is not known, so max_cost_usd cannot be kept",
                "Add it to prices.json (USD a million tokens), or limit max_calls instead.",
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
        if not self.limited or self._state is None:
            yield Bill(0.0)
            return
        guess = ModelUsage(input_tokens=letters // _LETTERS_A_TOKEN, output_tokens=_USUAL_ANSWER)
        bill = Bill(price.cost(guess) if price is not None else 0.0)
        if not self._state.reserve(
            self._run, bill.reserved, max_calls=self.max_calls, max_usd=self.max_cost_usd
        ):
            raise self._spent(self._state)
        try:
            yield bill
        finally:
            if bill.taken is not None:
                self._state.settle(self._run, bill.taken - bill.reserved)

    def _spent(self, state: State) -> BudgetSpentError:
        calls, usd = state.spent(self._run)
        if self.max_calls is not None and calls >= self.max_calls:
            reason = f"max_calls is reached: {calls} of {self.max_calls}"
        else:
            reason = (
                f"max_cost_usd is reached: ${usd:.4f} of ${self.max_cost_usd:.4f} "
                f"spent or set aside for {calls} calls"
            )
        return BudgetSpentError("the run's budget", reason, "The next run goes on from here.")

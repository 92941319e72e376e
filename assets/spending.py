"""What asking language models took, as a stage says it of each of its partitions."""

from typing import Any

from debrief.evaluators import Evaluators
from debrief.models.usage import RunUsage

POOL = "language_model"
"""Of every stage that asks: a limit on it holds over all runs of an instance."""


class Spending:
    """Tells, each time it is asked, what was taken since it was asked last."""

    def __init__(self, evaluators: Evaluators) -> None:
        self._evaluators = evaluators
        self._before = RunUsage()

    def metadata(self) -> dict[str, Any]:
        """Return the figures; none when no model is behind the evaluators."""
        if self._evaluators.models is None:
            return {}
        now = self._evaluators.spent
        spent, self._before = now - self._before, now
        cost = spent.usage.cost_usd
        return {
            "calls": spent.calls,
            "requests_sent": spent.sent,
            "answers_recalled": spent.recalled,
            "input_tokens": spent.usage.input_tokens,
            "input_tokens_cached_by_provider": spent.usage.cache_read_tokens,
            "output_tokens": spent.usage.output_tokens,
            **({"cost_usd": cost} if cost is not None else {"cost": "not known"}),
            **({"dry_run": True} if self._evaluators.dry_run else {}),
        }

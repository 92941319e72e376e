"""What proposing prompts would take, before anything is asked: calls, tokens, money.

Counted from the texts that go into each question and from the lengths that answers are asked for.
The model decides how often prompts are rewritten and how long they become, so it is an estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from debrief.models.prices import Price
from debrief.models.usage import ModelUsage
from debrief.training.lessons import findings_of
from debrief.training.model import TrainingSample
from debrief.training.optimisation import OptimiserOptions, sides_of
from debrief.training.trials import request_of

_COURSE, _REMARKS, _JUDGEMENT = 400, 200, 150
"""Tokens of answers, as they are asked for in words."""
_FORM, _QUESTION = 180, 420
"""Tokens of a question beside its data: to an agent or subagent, and to the judge."""
_REWRITINGS = 6
"""PromptTrials to a rewriting: three before it and three after."""
_SHOWN = 3
"""PromptTrials that a rewriting is shown."""


class CostEstimate(Struct, frozen=True, kw_only=True):
    """What proposing prompts would take at most, about."""

    trained_on: int
    held_out: int
    trials: int
    calls: int
    usage: ModelUsage
    """Without what an earlier run left in the cache."""


def estimate_cost(
    samples: Sequence[TrainingSample],
    options: OptimiserOptions,
    count: Callable[[str], int],
    price: Price | None = None,
) -> CostEstimate:
    """Return what proposing prompts from samples would take.

    Args:
        samples: of one prompt fingerprint.
        options: how much may be tried.
        count: counts the tokens of a text.
        price: of the model; None when it is not known or none is named.
    """
    train, held_out = (side[: options.most_samples] for side in sides_of(samples))
    snapshot = samples[0].used_prompts
    prompts = [count(snapshot.main), *map(count, snapshot.subagents.values())] if snapshot else [0]
    tried = train + held_out
    request = _mean(count(request_of(sample)) for sample in tried)
    findings = _mean(count(findings_of(sample)) for sample in tried)
    course = _COURSE + _REMARKS * (len(prompts) - 1)
    agents = [
        ModelUsage(input_tokens=prompts[0] + request + _FORM, output_tokens=_COURSE),
        *(
            ModelUsage(input_tokens=prompt + request + _COURSE + _FORM, output_tokens=_REMARKS)
            for prompt in prompts[1:]
        ),
    ]
    judge = ModelUsage(
        input_tokens=request + findings + course + _QUESTION, output_tokens=_JUDGEMENT
    )
    longest = max(prompts)
    seen = _SHOWN * (request + course + _JUDGEMENT)
    rewriting = ModelUsage(input_tokens=longest + seen + _QUESTION, output_tokens=max(270, longest))
    trials = options.trials + len(train) + 2 * len(held_out)
    rewritings = -(-options.trials // _REWRITINGS)
    asked = [(usage, trials) for usage in (*agents, judge)] + [(rewriting, rewritings)]
    return CostEstimate(
        trained_on=len(train),
        held_out=len(held_out),
        trials=trials,
        calls=sum(times for _, times in asked),
        usage=ModelUsage(
            input_tokens=sum(usage.input_tokens * times for usage, times in asked),
            output_tokens=sum(usage.output_tokens * times for usage, times in asked),
            cost_usd=sum(price.cost(usage) * times for usage, times in asked) if price else None,
        ),
    )


def _mean(values: Iterable[int]) -> int:
    found = list(values)
    return sum(found) // max(1, len(found))

"""What tokens cost, as far as anybody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from debrief.errors import ConfigurationError
from debrief.models.usage import ModelUsage, context_window, price_of, total

NOWHERE = Path("no such file")


@pytest.mark.parametrize("model", ["openai/gpt-4o-mini", "gpt-4o-mini", "gemini/gemini-2.5-pro"])
def test_known_models_have_a_price_and_a_window(model: str) -> None:
    price = price_of(model, NOWHERE)
    assert price is not None
    assert 0 < price.rates.cache_read < price.rates.input < price.rates.output
    assert (context_window(model) or 0) > 100_000


@pytest.mark.parametrize("model", ["openai/no-such-model", "acme/gpt-4o-mini", "offline"])
def test_others_have_none(model: str) -> None:
    assert price_of(model, NOWHERE) is None
    assert context_window(model) is None


def test_cached_input_is_cheaper_and_counted_once() -> None:
    price = price_of("openai/gpt-4o-mini", NOWHERE)
    assert price is not None
    plain = price.cost(ModelUsage(input_tokens=1000, output_tokens=10))
    cached = price.cost(ModelUsage(input_tokens=1000, cache_read_tokens=800, output_tokens=10))
    saved = 800 * (price.rates.input - price.rates.cache_read)
    assert cached == pytest.approx(plain - saved)


def test_a_long_prompt_costs_what_long_prompts_cost() -> None:
    price = price_of("gemini/gemini-2.5-pro", NOWHERE)
    assert price is not None
    assert price.tiers
    above, rates = price.tiers[0]
    assert price.cost(ModelUsage(input_tokens=above)) == pytest.approx(above * price.rates.input)
    assert price.cost(ModelUsage(input_tokens=above + 1)) == pytest.approx(
        (above + 1) * rates.input
    )


def test_a_table_of_ones_own_wins_and_is_in_usd_a_million_tokens(tmp_path: Path) -> None:
    own = tmp_path / "prices.json"
    own.write_text('{"openrouter/x-ai/grok-4.1-fast": {"input": 0.2, "output": 0.5}}')
    price = price_of("openrouter/x-ai/grok-4.1-fast", own)
    assert price is not None
    assert price.cost(ModelUsage(input_tokens=1_000_000, output_tokens=2_000_000)) == pytest.approx(
        1.2
    )
    assert price_of("openai/gpt-4o-mini", own, packaged=False) is None


def test_a_table_with_a_mistake_is_named(tmp_path: Path) -> None:
    prices: list[dict[str, object]] = [
        {"input": 1},
        {"input": -1, "output": 1},
        {"input": "1", "output": 1},
        {"input": 1, "output": 1, "per": "token"},
    ]
    own = tmp_path / "prices.json"
    for text in ("{", "[]", *(json.dumps({"m": price}) for price in prices)):
        own.write_text(text)
        with pytest.raises(ConfigurationError, match=r"prices\.json"):
            price_of("m", own)


def test_a_sum_with_an_unknown_part_is_unknown_and_no_sum_is_0() -> None:
    assert total([]).cost_usd == 0
    assert total([ModelUsage(cost_usd=1.0), ModelUsage(cost_usd=0.5)]).cost_usd == 1.5
    assert total([ModelUsage(cost_usd=1.0), ModelUsage()]).cost_usd is None

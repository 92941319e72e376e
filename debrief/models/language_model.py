"""The one door to any language model.

A model is named as LiteLLM names it (``openrouter/x-ai/grok-4.1-fast``, ``openai/gpt-4o-mini``).
Its key is read from ``<PROVIDER>_API_KEY``, in the environment or in ``~/.debrief/.env``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from debrief.errors import ConfigurationError, DebriefError, ModelError
from debrief.settings import Settings

if TYPE_CHECKING:
    import dspy

TIMEOUT = 180.0
"""Seconds for one call."""
RETRIES = 6
"""Of one call, on 429, 5xx, timeouts and broken connections, with growing pauses."""
MAX_TOKENS = 16_000


class Answer(Struct, frozen=True, kw_only=True):
    """What a language model gave back, and what it took."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None when the model's price is not known."""


class Usage(Struct, frozen=True, kw_only=True):
    """What calls came to."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None


class LanguageModel:
    """A named model with its key, its time limit and its retries; safe to use from threads.

    Args:
        name: LiteLLM's name of the model.
        api_key: its provider's key.
        base_url: where to ask, when not at the provider's usual place.
        timeout: seconds for one call.
        retries: of one call that failed for a passing reason.
    """

    def __init__(
        self,
        name: str,
        *,
        api_key: str,
        base_url: str = "",
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        self.name = name
        self._options: dict[str, Any] = {"api_key": api_key, "timeout": timeout}
        if base_url:
            self._options["api_base"] = base_url
        self._retries = retries

    def new_lm(self) -> dspy.LM:
        """Return a DSPy model of its own, whose history holds only what is asked through it.

        Prices come from the packaged table: fetching a newer one would hold up the first call.
        """
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import dspy

        return dspy.LM(
            self.name,
            max_tokens=MAX_TOKENS,
            cache=False,
            num_retries=self._retries,
            **self._options,
        )

    def ask(self, prompt: str) -> Answer:
        """Send one prompt and return the answer.

        Raises:
            ModelError: there is none after all retries.
        """
        lm = self.new_lm()
        with failures_named(self.name):
            outputs = lm(prompt)
        text = outputs[0] if outputs else ""
        text = text.get("text", "") if isinstance(text, dict) else text
        usage = usage_of(lm)
        return Answer(
            text=text or "",
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=usage.cost_usd,
        )


def language_model(name: str, settings: Settings) -> LanguageModel:
    """Return the model of that name with the key that the settings hold for its provider.

    Raises:
        ConfigurationError: no key is set and no server of one's own is named.
    """
    provider = name.split("/", 1)[0] if "/" in name else "openai"
    prefix = provider.upper().replace("-", "_")
    key = settings.get(f"{prefix}_API_KEY")
    base_url = settings.get("DEBRIEF_MODEL_BASE_URL") or settings.get(f"{prefix}_API_BASE")
    if not key and not base_url:
        raise ConfigurationError(
            name,
            f"{prefix}_API_KEY is not set",
            f"Put it into {settings.home / '.env'} (chmod 600) or the environment, name another "
            "model with --model, or use --offline.",
        )
    return LanguageModel(name, api_key=key or "none", base_url=base_url)


@contextmanager
def failures_named(model: str) -> Iterator[None]:
    """Turn whatever a model call raises into a ModelError that names the model and the reason."""
    try:
        yield
    except DebriefError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:500] or type(error).__name__
        raise ModelError(model, reason, "It is tried again by the next run.") from error


def usage_of(lm: dspy.LM) -> Usage:
    """Return what all calls through ``lm`` came to; the cost is None if one's is not known."""
    entries = list(lm.history)
    costs = [entry.get("cost") for entry in entries]
    return Usage(
        input_tokens=sum(_count(entry, "prompt_tokens") for entry in entries),
        output_tokens=sum(_count(entry, "completion_tokens") for entry in entries),
        cost_usd=None if not costs or None in costs else float(sum(c for c in costs if c)),
    )


def _count(entry: dict[str, Any], field: str) -> int:
    return int((entry.get("usage") or {}).get(field) or 0)

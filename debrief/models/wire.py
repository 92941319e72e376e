"""One request to a model's server, by DSPy's own client where it speaks the provider's language,
and by LiteLLM, which takes seconds to load, where it does not."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from debrief.models.usage import ModelUsage

if TYPE_CHECKING:
    from dspy.lm15 import CacheConfig, Request, Response

_OUTPUT_WITHOUT_THINKING = frozenset({"gemini", "vertex", "vertex-express", "xai"})


@dataclass(eq=False, repr=False)
class Wire:
    """Where a model is asked; opened by the first request, its connections shared by threads."""

    model: str
    """LiteLLM's name of it."""
    api_key: str
    """Its provider's key; empty where LiteLLM finds credentials of its own."""
    base_url: str
    """Where to ask, when not at the provider's usual place."""
    timeout: float
    """Seconds without a byte after which a request is given up."""
    connections: int
    """At a time."""

    def send(self, request: Request) -> Response:
        """Send one request, once.

        Raises:
            LM15Error: there is no answer; its class says why.
        """
        engine, _ = self._route
        response: Response = engine.complete(request)
        return response

    def prompt_cache(self) -> CacheConfig | None:
        """Return the mark behind the system message, where a provider caches by marks.

        Others cache the beginning of a prompt by themselves, and need the same beginning only.
        """
        from dspy.lm15 import CacheConfig

        _, provider = self._route
        return CacheConfig(prefix="stable") if provider == "anthropic" else None

    def usage(self, response: Response) -> ModelUsage:
        """Return a response's usage, the same for all providers; its cost only where it says it."""
        said = response.usage
        _, provider = self._route
        read, written = said.cache_read_tokens or 0, said.cache_write_tokens or 0
        inputs, outputs = said.input_tokens or 0, said.output_tokens or 0
        if "anthropic" in provider:
            inputs += read + written
        if provider in _OUTPUT_WITHOUT_THINKING:
            outputs += said.reasoning_tokens or 0
        return ModelUsage(
            input_tokens=inputs,
            output_tokens=outputs,
            cache_read_tokens=read,
            cache_write_tokens=written,
            cost_usd=_billed(response) if self.model.startswith("openrouter/") else None,
        )

    @cached_property
    def _route(self) -> tuple[Any, str]:
        """The client, and the provider that DSPy's own is for; none when LiteLLM is asked."""
        return self._native() or (self._litellm(), "")

    def _native(self) -> tuple[Any, str] | None:
        from dspy.clients.engines import LM15Engine
        from dspy.lm15 import LM15Error, RouterConfig, Timeouts

        with suppress(LM15Error):
            provider = str(LM15Engine(RouterConfig(env={})).resolve(self.model).provider)
            if provider.startswith("azure") or not self.api_key:
                return None
            config = RouterConfig(
                env={},
                api_keys={provider: self.api_key},
                base_urls={provider: self.base_url} if self.base_url else None,
                timeouts=Timeouts(read=self.timeout, write=self.timeout, pool=None),
                max_connections=self.connections,
            )
            return LM15Engine(config), provider
        return None

    def _litellm(self) -> Any:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        from dspy.clients.engines import LiteLLMEngine

        access = {"api_key": self.api_key, "api_base": self.base_url}
        given = {name: value for name, value in access.items() if value}
        return LiteLLMEngine(model_type="chat", timeout=self.timeout, **given)


def _billed(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    return float(cost) if isinstance(cost, int | float) and cost >= 0 else None

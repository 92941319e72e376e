"""One request to a model's server, by DSPy's own client where it speaks the provider's language,
and by LiteLLM, which takes seconds to load, where it does not."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from debrief.models.usage import ModelUsage

if TYPE_CHECKING:
    from dspy.lm15 import CacheConfig, Request, Response

_WITH_MARKS = frozenset({"anthropic"})
_INPUT_WITHOUT_CACHE = "anthropic"
_OUTPUT_WITHOUT_THINKING = frozenset({"gemini", "vertex", "vertex-express", "xai"})


class _Engine(Protocol):
    def complete(self, request: Request) -> Response: ...


class _Route(Struct, frozen=True):
    engine: _Engine
    provider: str
    """Of DSPy's client; empty when LiteLLM is asked."""


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

    def __post_init__(self) -> None:
        self._lock = Lock()
        self._route: _Route | None = None

    def send(self, request: Request) -> Response:
        """Send one request, once.

        Raises:
            LM15Error: there is no answer; its class says why.
        """
        return self._open().engine.complete(request)

    def prompt_cache(self) -> CacheConfig | None:
        """Return the mark behind the system message, where a provider caches by marks.

        Others cache the beginning of a prompt by themselves, and need the same beginning only.
        """
        from dspy.lm15 import CacheConfig

        marked = self._open().provider in _WITH_MARKS
        return CacheConfig(prefix="stable") if marked else None

    def usage(self, response: Response) -> ModelUsage:
        """Return a response's usage, the same for all providers; its cost only where it says it."""
        said = response.usage
        provider = self._open().provider
        read, written = said.cache_read_tokens or 0, said.cache_write_tokens or 0
        inputs, outputs = said.input_tokens or 0, said.output_tokens or 0
        if _INPUT_WITHOUT_CACHE in provider:
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

    def _open(self) -> _Route:
        with self._lock:
            if self._route is None:
                self._route = self._native() or self._litellm()
            return self._route

    def _native(self) -> _Route | None:
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
            return _Route(cast(_Engine, LM15Engine(config)), provider)
        return None

    def _litellm(self) -> _Route:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        from dspy.clients.engines import LiteLLMEngine

        options: dict[str, Any] = {"timeout": self.timeout}
        if self.api_key:
            options["api_key"] = self.api_key
        if self.base_url:
            options["api_base"] = self.base_url
        return _Route(cast(_Engine, LiteLLMEngine(model_type="chat", **options)), "")


def _billed(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    if isinstance(cost, int | float) and not isinstance(cost, bool) and cost >= 0:
        return float(cost)
    return None

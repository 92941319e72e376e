"""Make the models that a machine's settings configure."""

from __future__ import annotations

from difflib import get_close_matches

from debrief.errors import ConfigurationError
from debrief.models.language_model import LanguageModel
from debrief.models.programs import AT_ONCE, installed, listed_name, program_of
from debrief.models.recorded import is_recorded
from debrief.models.usage import (
    PRICES_FORM,
    Budget,
    Price,
    Rates,
    RunUsage,
    is_listed,
    longest_answer,
    own_prices,
    price_of,
    providers,
)
from debrief.settings import Settings

_KEYS = {
    "azure_ai": "AZURE_AI_API_KEY",
    "fireworks_ai": "FIREWORKS_API_KEY",
    "huggingface": "HF_TOKEN",
    "text-completion-openai": "OPENAI_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
}
_OWN_CREDENTIALS = frozenset(
    {"bedrock", "sagemaker", "vertex_ai", "ollama", "ollama_chat", "lm_studio", "llamafile"}
)
"""Asked without a key of ours: a cloud's own credentials, or a server on this machine."""
OPENROUTER = "openrouter"
_TAGS_OF_PROVIDERS = frozenset(
    {
        *("ai21", "anthropic", "cohere", "deepseek", "inception", "minimax", "morph", "openai"),
        *("perplexity",),
    }
)
"""What OpenRouter's tags and LiteLLM's names of these providers' models both begin with."""


class Models:
    """The language models of one run: one of a name, with one cache and one budget.

    Settings (environment, or the environment file of this machine): ``<PROVIDER>_API_KEY``,
    ``<PROVIDER>_API_BASE`` or ``DEBRIEF_MODEL_BASE_URL``, ``DEBRIEF_CONCURRENCY``,
    ``DEBRIEF_TIMEOUT`` and ``DEBRIEF_RETRY_PAUSE`` (seconds), ``DEBRIEF_TEMPERATURE``,
    ``DEBRIEF_MAX_TOKENS``, ``DEBRIEF_MAX_COST_USD``, ``DEBRIEF_MAX_CALLS``,
    ``DEBRIEF_FALLBACK_MODELS`` (commas between), ``DEBRIEF_PRICES`` (a file),
    ``DEBRIEF_CACHE=off``.

    Args:
        settings: of this machine.
        run: names the run where several processes work for it; once it is over, or others do its
            work, nothing more is asked.
        account: names those runs that share the limits; the run alone by default.
        dry_run: count what would be asked, and ask nothing.
        fail_fast: send a question twice at most, within seconds: right where a person waits.

    Raises:
        ConfigurationError: the shared state cannot be opened, or the file of prices is not there.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        run: str = "",
        account: str = "",
        dry_run: bool = False,
        fail_fast: bool = False,
    ) -> None:
        # SQLAlchemy is a fifth of what else a command without a model loads.
        from debrief.state import open_state, prune_daily

        self._settings = settings
        if "prices" in settings.model_fields_set and not settings.prices.is_file():
            raise ConfigurationError(
                f"DEBRIEF_PRICES={settings.prices}", "is no file", f"Write there {PRICES_FORM}."
            )
        self.temperature = settings.temperature
        self._dry_run, self._fail_fast = dry_run, fail_fast
        self._made: dict[str, LanguageModel] = {}
        self.concurrency = settings.concurrency
        self._cache = open_state(settings) if settings.cache else None
        if self._cache is not None and run:
            prune_daily(self._cache, settings)
        account, limits = account or run, (settings.max_cost_usd, settings.max_calls)
        self.budget = Budget(
            max_cost_usd=settings.max_cost_usd,
            max_calls=settings.max_calls,
            run=account,
            prices=settings.prices,
            state=open_state(settings) if account and limits != (None, None) else None,
        )

    def get(self, name: str) -> LanguageModel:
        """Return the model of that name, the same one each time.

        Raises:
            ConfigurationError: no key is set and no server of one's own is named, or its price
                is not known and the run is limited in money.
        """
        if name not in self._made:
            others = [other for other in self._settings.fallback_models if other != name]
            fallbacks = [self._make(other, ()) for other in others]
            self._made[name] = self._make(name, fallbacks)
        return self._made[name]

    @property
    def keeps_answers(self) -> bool:
        """Return whether an answer that was found usable is kept for the next time."""
        return self._cache is not None

    @property
    def notes(self) -> list[str]:
        """Return where models are asked whose names say it in two ways, a sentence each."""
        notes = (access_note(name, self._settings) for name in self._made)
        return [note for note in notes if note]

    @property
    def spent(self) -> RunUsage:
        """Return what this run's models took in this process."""
        made = list(self._made.values())
        models = (each for model in made for each in (model, *model.fallbacks))
        return sum((model.meter.spent for model in models), RunUsage())

    def _make(self, name: str, fallbacks: list[LanguageModel] | tuple[()]) -> LanguageModel:
        settings = self._settings
        asked_as = asked_name(name, settings)
        key, base_url = _access(asked_as, settings, needed=not self._dry_run)
        # OpenRouter's names are its own; others may name what a server of one's own gives.
        packaged = not settings.model_base_url and (
            not base_url or _provider(asked_as)[0] == OPENROUTER
        )
        known = longest_answer(listed_name(asked_as)) if packaged else None
        by_program = program_of(name) is not None
        several = self.concurrency if settings.variable("DEBRIEF_CONCURRENCY") else AT_ONCE
        return LanguageModel(
            name,
            asked_as=asked_as,
            api_key=key,
            base_url=base_url,
            timeout=settings.timeout,
            pause=settings.retry_pause,
            concurrency=min(several, self.concurrency) if by_program else self.concurrency,
            fail_fast=self._fail_fast,
            max_tokens=min(settings.max_tokens, known or settings.max_tokens),
            temperature=self.temperature,
            price=_price(asked_as, settings, packaged=packaged),
            cache=self._cache,
            budget=self.budget,
            fallbacks=fallbacks,
            dry_run=self._dry_run,
        )


def key_name(model: str) -> str:
    """Return the name of the setting that holds the key of a model's provider.

    >>> key_name("openrouter/x-ai/grok-4.1-fast")
    'OPENROUTER_API_KEY'
    """
    provider, prefix = _provider(model)
    return _KEYS.get(provider, f"{prefix}_API_KEY")


def asked_name(model: str, settings: Settings) -> str:
    """Return the name under which a model is asked: OpenRouter's where its key is the only one.

    ``anthropic/claude-sonnet-4.5`` is a tag of OpenRouter as well as a name of Anthropic's.
    """
    return f"{OPENROUTER}/{model}" if _where(model, settings) == OPENROUTER else model


def can_be_asked(model: str, settings: Settings) -> bool:
    """Return whether a model's key, its server or its program is there."""
    try:
        _access(asked_name(model, settings), settings, needed=True)
    except ConfigurationError:
        return False
    return True


def access_note(model: str, settings: Settings) -> str:
    """Return where a model is asked that two keys could be for, and how to choose; else ``""``."""
    own, where = key_name(model), _where(model, settings)
    if where == OPENROUTER:
        return f"{model} is asked at OpenRouter, as {own} is not set."
    if where:
        return (
            f"{model} is asked with {own}; {OPENROUTER}/{model} would be asked with "
            "OPENROUTER_API_KEY."
        )
    return ""


def _where(model: str, settings: Settings) -> str:
    """Return which provider is asked for a model that OpenRouter has too; ``""`` for others.

    It is no question without OpenRouter's key, or where a server of one's own answers.
    """
    provider, prefix = _provider(model)
    if "/" not in model or provider not in _TAGS_OF_PROVIDERS:
        return ""
    if settings.model_base_url or not settings.variable("OPENROUTER_API_KEY"):
        return ""
    has_own = settings.variable(key_name(model)) or settings.variable(f"{prefix}_API_BASE")
    return provider if has_own else OPENROUTER


def _price(name: str, settings: Settings, *, packaged: bool) -> Price | None:
    """Return a model's price; of one that a program asks, its own or what its provider asks."""
    if is_recorded(name):
        return Price(rates=Rates(0.0, 0.0, 0.0, 0.0))
    own = own_prices(settings.prices).get(name)
    return own or price_of(listed_name(name), settings.prices, packaged=packaged)


def _access(model: str, settings: Settings, needed: bool) -> tuple[str, str]:
    if is_recorded(model):
        return "", ""
    if program := program_of(model):
        if needed and program not in installed():
            raise ConfigurationError(
                model,
                f"the program {program.command} is not on the search path",
                f"Install it: npm install -g {program.package}. {program.login} Or name another "
                "model with --model, or use --no-model.",
            )
        return "", ""
    provider, prefix = _provider(model)
    name = key_name(model)
    key = settings.variable(name)
    base_url = settings.model_base_url or settings.variable(f"{prefix}_API_BASE")
    if not key and base_url:
        return "none", base_url
    if not key and needed and provider not in _OWN_CREDENTIALS:
        reason = _why_asked_there(model, settings)
        raise ConfigurationError(
            model.removeprefix(f"{OPENROUTER}/") if reason else model,
            f"{reason}{name} is not set",
            f"Put it{' or OPENROUTER_API_KEY' * (provider in _TAGS_OF_PROVIDERS and '/' in model)} "
            f"into {settings.home / '.env'} (chmod 600) or the environment, name another "
            f"model with --model{_programs_here()}, or use --no-model.",
        )
    return key, base_url


def _why_asked_there(model: str, settings: Settings) -> str:
    """Return why a provider is asked that the name which a person gave does not say; else empty."""
    given = model.removeprefix(f"{OPENROUTER}/")  # which a person may have left out
    if "/" not in model and not is_listed(model):
        return "its name begins with no provider, so OpenAI is asked, and "
    if given == model or given != settings.model:
        return ""
    provider = given.partition("/")[0]
    close = get_close_matches(provider, {*providers(), OPENROUTER}, n=1)
    meant = f" (did you mean {close[0]}?)" if close else ""
    return f"no provider is called {provider}{meant}, so OpenRouter is asked, and "


def _programs_here() -> str:
    """Return the names of the programs of this machine that answer without a key."""
    names = " or ".join(program.name for program in installed())
    return f" ({names} answers without a key)" if names else ""


def _provider(model: str) -> tuple[str, str]:
    """Return a model's provider, and how the names of its settings begin."""
    provider = model.split("/", 1)[0] if "/" in model else "openai"
    return provider, provider.upper().replace("-", "_")

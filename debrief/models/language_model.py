"""A language model behind one interface: cache, retries, limits, cost, and provider fallbacks.

Every question of the project goes out here: bounded in number at a time and in money, sent again
when a failure passes, counted, and never asked twice once its answer was found usable.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, structs

from debrief.errors import DebriefError, ModelError
from debrief.keys import digest_of
from debrief.models.answers import NEXT_RUN, Answer, Question
from debrief.models.program_engine import LONGEST_WAIT, ProgramEngine, next_move
from debrief.models.programs import ProgramError, program_of
from debrief.models.subject import asked_about
from debrief.models.usage import ASKED_HERE, Budget, Meter, ModelUsage, Price
from debrief.opening import opened
from debrief.retry import RetryPolicy, retrying

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import CacheConfig, LM15Error, Request, Response

    from debrief.state import State

_OUTPUT_WITHOUT_THINKING = frozenset({"gemini", "vertex", "vertex-express", "xai"})
VERSION = "2"
"""Of this layer: part of every cache key, raised when the same question is put differently."""
MAX_TOKENS = 16_000
"""Of an answer, thinking included; OpenAI's reasoning models take no less."""
_USUAL_ANSWER, _USUAL_READING = 500, 2_000
"""Tokens that an estimate counts for an answer, and for one in a form of many fields."""
_ATTEMPTS_OF_PROGRAMS = 4
"""They send again by themselves what fails on the way."""


class DryRunError(ModelError):
    """A question that would have gone out."""


class TooLongError(ModelError):
    """A prompt that the model cannot take; a shorter one may do."""


class _StoredAnswer(Struct, frozen=True, kw_only=True):
    """An answer that was found usable. JSON and never a pickle, so that a state which somebody
    else could write runs no code here.
    """

    text: str
    usage: ModelUsage
    model: str


@dataclass(eq=False, repr=False)
class LanguageModel:
    """A named model with its key, its limits and its memory; safe to use from threads."""

    name: str
    """LiteLLM's name of the model, or a program's."""
    _: KW_ONLY
    api_key: str
    """Its provider's key."""
    base_url: str = ""
    """Where to ask, when not at the provider's usual place."""
    timeout: float = 180.0
    """Seconds without a byte after which a call is given up and sent again."""
    attempts: int = 8
    """Times that one question is sent at most. With 27 % of calls failing, 4 lose one in two
    hundred sessions and 8 none."""
    pause: float = 0.5
    """Seconds before the second attempt, at most; it doubles from there."""
    concurrency: int = 8
    """Calls under way at once."""
    price: Price | None = None
    """What tokens cost; None when nobody knows."""
    cache: State | None = None
    """Where answers are kept that were found usable; None keeps none."""
    budget: Budget = field(default_factory=Budget)
    """Of the run."""
    temperature: float = 0.0
    """Sent with every question of ours; a model that refuses one is asked without."""
    fallbacks: Sequence[LanguageModel] = ()
    """Asked in turn when this model cannot be had; answers say who gave them."""
    dry_run: bool = False
    """Count what would be asked, and ask nothing."""

    def __post_init__(self) -> None:
        self.meter = Meter(None if self.dry_run else ASKED_HERE)
        self._program = program_of(self.name)
        policy = RetryPolicy(
            attempts=self.attempts, seconds=3_600, first_wait=self.pause, longest_wait=60.0
        )
        if self._program:
            policy = structs.replace(
                policy,
                attempts=min(self.attempts, _ATTEMPTS_OF_PROGRAMS),
                seconds=4 * LONGEST_WAIT,
                longest_retry_after=LONGEST_WAIT,
            )
        self._retry = retrying(policy, is_temporary, name=self.name, describe=self._reason)
        self._slots = BoundedSemaphore(self.concurrency)
        self._closed: ModelError | None = None
        self._refused: frozenset[Setting] = frozenset()
        self._counted: set[str] = set()
        """Questions that were asked: a dry run counts one that two stages ask once."""
        if not self.dry_run:
            self.budget.check(self.name, self.price)

    def ask(self, question: str | Question, sample: int = 0) -> Answer:
        """Send one question and return the answer, or the answer that was accepted before.

        An answer is kept only when ``accepted`` says so.

        Args:
            question: plain, or with a constant beginning and the form of its answer.
            sample: which of several independent answers to it, from 0; each is kept on its own.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there is no answer after all attempts.
        """
        asked = Question(text=question) if isinstance(question, str) else question
        form = [digest_of(asked.form)] if asked.form else []
        key = self.key_of("ask", asked.whole, str(sample), *form)
        if self.dry_run and key in self._counted:
            raise DryRunError(self.name, "counted before")
        kept = self.recall(key)
        if kept is not None:
            return kept
        self._counted.add(key)
        lm = self.new_lm(prompt_cache=bool(asked.constant))
        with failures_named(self.name):
            lm(messages=_messages(asked), **_response_format(asked))
        return structs.replace(last_answer(lm), remember=lambda last: self.remember(key, last))

    def new_lm(self, prompt_cache: bool = False, engine: Any = None) -> dspy.LM:
        """Return a DSPy model of its own, whose history holds only what is asked through it.

        Its calls take the same way as ``ask``'s and are counted and limited with them; they are
        not cached, because only who asks knows whether an answer was usable.

        Args:
            prompt_cache: mark the system message for the provider's cache, where one needs marks.
            engine: what answers instead, such as one that remembers.
        """
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import dspy

        mark = prompt_cache and not self.fallbacks and not self.dry_run
        return dspy.LM(
            self.name,
            engine=engine or _Door(self),
            max_tokens=MAX_TOKENS,
            cache=False,
            num_retries=0,
            prompt_cache=self._prompt_cache() if mark else None,
        )

    def key_of(self, *parts: str) -> str:
        """Return the cache's key of a question: all that its answer depends on."""
        asked = (self.name, self.base_url, MAX_TOKENS, self.temperature)
        return digest_of("answers", VERSION, *asked, parts)

    def recall(self, key: str) -> Answer | None:
        """Return the answer kept under a key; None when there is none that can be read."""
        value = self.cache.get(key) if self.cache is not None else None
        try:
            stored = msgspec.json.decode(value or b"", type=_StoredAnswer)
        except msgspec.DecodeError:
            return None
        self.meter.count(recalled=1)
        return Answer(
            **structs.asdict(stored),
            recalled=True,
            remember=lambda last: self.remember(key, last),
        )

    def remember(self, key: str, answer: Answer) -> None:
        """Keep an answer that was found usable."""
        if self.cache is not None:
            stored = _StoredAnswer(text=answer.text, usage=answer.usage, model=answer.model)
            self.cache.put(key, msgspec.json.encode(stored), asked_about())

    def complete(self, request: Request) -> tuple[Response, Answer]:
        """Send a request until it is answered, by a fallback if need be.

        Raises:
            BudgetSpentError: the run may ask no more.
            TooLongError: the prompt is longer than the model takes.
            ModelError: there is no answer after all attempts.
            RunOverError: the run that asks is over.
        """
        failures: list[ModelError] = []
        for model in (self, *self.fallbacks):
            try:
                return model._complete(replace(request, model=model.name))
            except (DryRunError, TooLongError):
                raise
            except ModelError as error:
                if error.culprit != model.name:
                    raise
                failures.append(error)
        raise failures[0]

    def _complete(self, request: Request) -> tuple[Response, Answer]:
        from dspy.lm15 import AuthError, BillingError, ContextLengthError, LM15Error

        if self._closed is not None:
            raise self._closed
        text = _text_of(request)
        if self.dry_run:
            from debrief.tokens import count_tokens

            usual = _USUAL_READING if request.config.response_format else _USUAL_ANSWER
            usage = ModelUsage(input_tokens=count_tokens(text), output_tokens=usual)
            self.meter.count(calls=1, usage=self._priced(usage))
            raise DryRunError(self.name, "a dry run asks nothing")
        with self.budget.call(len(text), self.price) as bill:
            try:
                response = self._retry(self._send, request)
            except LM15Error as error:
                reason = self._reason(error)
                if isinstance(error, ContextLengthError):
                    raise TooLongError(self.name, reason) from None
                move = NEXT_RUN
                if self._program and isinstance(error.__cause__, ProgramError):
                    move = " ".join(filter(None, (next_move(self._program, error.__cause__), move)))
                elif isinstance(error, AuthError):
                    move = f"Check the key. {NEXT_RUN}"
                elif isinstance(error, BillingError):
                    move = f"Look at the account. {NEXT_RUN}"
                failure = ModelError(self.name, reason, move)
                # Every further question would be refused as well.
                if isinstance(error, AuthError | BillingError):
                    self._closed = failure
                raise failure from None
            usage = self._priced(self._usage(response))
            bill.taken = usage.cost_usd
        self.meter.count(calls=1, usage=usage)
        return response, Answer(
            text=response.text or "",
            model=self.name,
            cut=response.finish_reason == "length",
            usage=usage,
        )

    def _send(self, request: Request) -> Response:
        from dspy.lm15 import LM15Error

        with self._slots:
            if self._closed is not None:
                raise self._closed
            while True:
                request = _without(request, self._refused)
                self.meter.count(sent=1)
                try:
                    response: Response = self._route[0].complete(request)
                except LM15Error as error:
                    refused = _refused_setting(request, error)
                    if refused is None:
                        raise
                    self._refused |= {refused}
                else:
                    return response

    def _prompt_cache(self) -> CacheConfig | None:
        """Return the mark behind the system message, where a provider caches by marks.

        Others cache the beginning of a prompt by themselves, and need the same beginning only.
        """
        from dspy.lm15 import CacheConfig

        return CacheConfig(prefix="stable") if self._route[1] == "anthropic" else None

    def _usage(self, response: Response) -> ModelUsage:
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
            cost_usd=_billed(response) if self._is_billed else None,
        )

    @property
    def _is_billed(self) -> bool:
        """Whether answers come with what they cost."""
        return self._program is not None or self.name.startswith("openrouter/")

    @cached_property
    def _route(self) -> tuple[Any, str]:
        """The client, and the provider that DSPy's own is for; none when LiteLLM is asked.

        Opened by the first request, its connections shared by threads: DSPy's own client where it
        speaks the provider's language, and LiteLLM, which takes seconds to load, where it does not.
        """
        if self._program:
            return ProgramEngine(self._program, timeout=self.timeout), ""
        from dspy.clients.engines import LiteLLMEngine, LM15Engine
        from dspy.lm15 import LM15Error, RouterConfig, Timeouts

        with suppress(LM15Error):
            provider = str(LM15Engine(RouterConfig(env={})).resolve(self.name).provider)
            if self.api_key and not provider.startswith("azure"):
                config = RouterConfig(
                    env={},
                    api_keys={provider: self.api_key},
                    base_urls={provider: self.base_url} if self.base_url else None,
                    timeouts=Timeouts(read=self.timeout, write=self.timeout, pool=None),
                    max_connections=self.concurrency,
                )
                return LM15Engine(config), provider
        access = {"api_key": self.api_key, "api_base": self.base_url}
        given = {name: value for name, value in access.items() if value}
        return LiteLLMEngine(model_type="chat", timeout=self.timeout, **given), ""

    def _priced(self, usage: ModelUsage) -> ModelUsage:
        unpriced = usage.cost_usd is None and (usage.input_tokens or usage.output_tokens)
        if not unpriced or self.price is None:
            return usage
        return structs.replace(usage, cost_usd=self.price.cost(usage))

    def _reason(self, error: BaseException) -> str:
        """Return the first words of a failure, without the key that some servers repeat."""
        message, status = getattr(error, "message", str(error)), getattr(error, "status", None)
        if "timed out" in message and status is None:
            return f"nothing came for {self.timeout:g} s"
        said = " ".join(message.partition("\n\n")[0].split())[:500].rstrip(".")
        if len(self.api_key) > 4:
            said = said.replace(self.api_key, "<key>")
        code = f"HTTP {status}: " if status not in (None, 200) else ""
        return f"{code}{said or type(error).__name__}"


class _Door:
    """DSPy's view of a model: one engine a ``dspy.LM``, which keeps what came through it."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self.answers: list[Answer] = []

    def complete(self, request: Request) -> Response:
        """Answer one request."""
        config = replace(request.config, temperature=self._model.temperature)
        response, answer = self._model.complete(replace(request, config=config))
        self.answers.append(answer)
        return response


def last_answer(lm: dspy.LM) -> Answer:
    """Return the latest answer that came through ``lm``, which a ``LanguageModel`` made."""
    answer: Answer = lm.engine.answers[-1]
    return answer


@contextmanager
def failures_named(model: str) -> Iterator[None]:
    """Turn whatever a model call raises into a ModelError that names the model and the reason."""
    try:
        yield
    except DebriefError:
        raise
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, DebriefError):
            raise cause from None
        reason = " ".join(str(error).split())[:500] or type(error).__name__
        raise ModelError(model, reason, NEXT_RUN) from error


Setting = Literal["temperature", "response_format"]
_WORDS_OF_REFUSAL: Mapping[Setting, tuple[str, ...]] = {
    "temperature": ("temperature",),
    "response_format": (
        *("response_format", "json_schema", "output_config", "output_format"),
        *("responsejsonschema", "responseschema", "structured output", "schema"),
    ),
}


def _refused_setting(request: Request, error: LM15Error) -> Setting | None:
    """Return the setting of a request that a provider does not take, by the words of its error.

    Each is sent to all, as no list of models is ever complete, and left out once it was refused.
    """
    said = str(error).casefold()
    return next(
        (
            setting
            for setting, words in _WORDS_OF_REFUSAL.items()
            if getattr(request.config, setting) is not None and any(word in said for word in words)
        ),
        None,
    )


def _without(request: Request, settings: Iterable[Setting]) -> Request:
    return replace(request, config=replace(request.config, **dict.fromkeys(settings)))


def _messages(question: Question) -> list[dict[str, str]]:
    """Return the messages of a question, the first of which opens with our line: whoever keeps
    them may keep them where sessions are.
    """
    texts = [text for text in (question.constant, question.text) if text]
    roles = ("system", "user")[-len(texts) :]
    texts[0] = opened(texts[0])
    return [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]


def _response_format(question: Question) -> dict[str, Any]:
    if question.form is None:
        return {}
    form = {"name": "answer", "schema": question.form, "strict": True}
    return {"response_format": {"type": "json_schema", "json_schema": form}}


def _text_of(request: Request) -> str:
    parts = [request.system] if isinstance(request.system, str) else list(request.system or ())
    parts += [part for message in request.messages for part in message.parts]
    return "\n".join(part if isinstance(part, str) else str(part.text) for part in parts)


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    Rate limits, server errors, time limits and broken connections pass, and so does a body that
    is no answer at all: a gateway's page under status 200, half a JSON, nothing. A missing key,
    an empty account, a wrong request and a prompt that is too long do not.
    """
    from dspy import lm15

    if isinstance(error, lm15.AuthError | lm15.BillingError | lm15.InvalidRequestError):
        return False
    return isinstance(error, lm15.ProviderError | lm15.TransportError | lm15.LockTimeoutError)


def _billed(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    cost = usage.get("cost") if isinstance(usage, dict) else None
    return float(cost) if isinstance(cost, int | float) and cost >= 0 else None

"""A language model behind one interface: cache, retries, limits, cost, and provider fallbacks.

Every question of the project goes out here: bounded in number at a time and in money, sent again
when a failure passes, counted, and never asked twice once its answer was found usable.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property, partial
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct, structs

from debrief.errors import DebriefError, ModelError
from debrief.keys import digest_of
from debrief.models.answer_limit import answer_limit
from debrief.models.answers import (
    NEXT_RUN,
    Answer,
    Question,
    UnusableReplyError,
    holds_only_thinking,
)
from debrief.models.program_engine import LONGEST_WAIT, ProgramEngine, next_move
from debrief.models.programs import ProgramError, program_of
from debrief.models.rate_limits import moment_after
from debrief.models.recorded import RecordedEngine, is_recorded
from debrief.models.subject import asked_about
from debrief.models.usage import ASKED_HERE, Budget, Meter, ModelUsage, Price, number_of
from debrief.opening import opened
from debrief.retry import TEMPORARY_STATUS, RetryPolicy, retrying
from debrief.sessions.readers.documents import plain_text

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import CacheConfig, LM15Error, Request, Response

    from debrief.state import State

_OUTPUT_WITHOUT_THINKING = frozenset({"gemini", "vertex", "vertex-express", "xai"})
VERSION = "2"
"""Of this layer: part of every cache key, raised when the same question is put differently."""
MAX_TOKENS = 64_000
"""The longest answer asked for, thinking included, unless a setting or the provider says less."""
_LETTERS_A_TOKEN = 3
"""Few, so that a prompt is rather taken for too long than for too short."""
_USUAL_ANSWER, _USUAL_READING = 500, 2_000
"""Tokens that an estimate counts for an answer, and for one in a form of many fields."""
_ATTEMPTS_OF_PROGRAMS = 4
"""They send again by themselves what fails on the way."""
_FAIL_FAST = {"attempts": 2, "seconds": 10.0, "longest_wait": 2.0, "longest_retry_after": 5.0}
"""How often and how long a question is sent where a person waits for the answer."""
_UNREADABLE = 2
"""Calls for a question whose reply came whole and is none in the provider's form."""
_BUSY_IN_A_ROW = 3
"""Questions that ended on a rate limit, with none answered between, after which a model is closed:
each has been sent again for minutes."""
_GIVEN_UP: dict[tuple[str, str], ModelError] = {}
"""Why questions of a run have no usable answer, by the run and the question's key: two stages that
ask the same in one process pay for it once."""


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
    asked_as: str = ""
    """The name that requests carry, where another provider is asked for the model; the model's own
    name by default."""
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
    fail_fast: bool = False
    """Send a question twice at most, within seconds, whatever ``attempts`` says."""
    max_tokens: int = MAX_TOKENS
    """The longest answer asked for, thinking included."""
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
        self.asked_as = self.asked_as or self.name
        self._program = program_of(self.name)
        policy = RetryPolicy(
            attempts=self.attempts, seconds=3_600, first_wait=self.pause, longest_wait=60.0
        )
        if self.fail_fast:
            policy = structs.replace(policy, **_FAIL_FAST)
        elif self._program:
            policy = structs.replace(
                policy,
                attempts=min(self.attempts, _ATTEMPTS_OF_PROGRAMS),
                seconds=4 * LONGEST_WAIT,
                longest_retry_after=LONGEST_WAIT,
            )
        self._longest_wait = policy.longest_retry_after
        self._retry = retrying(policy, is_temporary, name=self.name, describe=self._reason)
        self._slots = BoundedSemaphore(self.concurrency)
        self._closed: ModelError | None = None
        self._opens_at = math.inf
        """When a closed model may be asked again, by the monotonic clock."""
        self._refused: frozenset[Setting] = frozenset()
        self._longest = self.max_tokens
        """Of an answer, as the provider said it."""
        self._window: int | None = None
        """Of prompt and answer together, as the provider said it."""
        self._busy = 0
        """Questions in a row that ended on a rate limit."""
        self._counted: set[str] = set()
        """Questions that were asked: a dry run counts one that two stages ask once."""
        if not self.dry_run:
            self.budget.check(self.name, self.price)

    def ask(self, question: str | Question) -> Answer:
        """Send one question and return the answer, or the answer that was accepted before.

        An answer is kept only when ``accepted`` says so.

        Args:
            question: plain, or with a constant beginning and the form of its answer.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there is no answer after all attempts, or none of the run's answers to it
                was usable.
        """
        asked = Question(text=question) if isinstance(question, str) else question
        form = [digest_of(asked.form)] if asked.form else []
        key = self.key_of("ask", asked.whole, *form)
        if self.dry_run and key in self._counted:
            raise DryRunError(self.name, "counted before")
        if (given_up := _GIVEN_UP.get((self.budget.run, key))) is not None:
            raise given_up
        give_up = partial(_GIVEN_UP.__setitem__, (self.budget.run, key))
        kept = self.recall(key)
        if kept is not None:
            return structs.replace(kept, give_up=give_up)
        self._counted.add(key)
        lm = self.new_lm(prompt_cache=bool(asked.constant))
        try:
            with failures_named(self.name):
                lm(messages=_messages(asked), **_response_format(asked))
        except UnusableReplyError as error:
            give_up(error)
            raise
        return structs.replace(
            last_answer(lm), remember=partial(self.remember, key), give_up=give_up
        )

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
            self.asked_as,
            engine=engine or _Door(self),
            max_tokens=self.max_tokens,
            cache=False,
            num_retries=0,
            prompt_cache=self._prompt_cache() if mark else None,
        )

    def key_of(self, *parts: str) -> str:
        """Return the cache's key of a question: all that its answer depends on."""
        asked = (self.asked_as, self.base_url, self.max_tokens, self.temperature)
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
            remember=partial(self.remember, key),
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
                return model._complete(replace(request, model=model.asked_as))
            except (DryRunError, TooLongError):
                raise
            except ModelError as error:
                if error.culprit != model.name:
                    raise
                failures.append(error)
        raise failures[0]

    def _complete(self, request: Request) -> tuple[Response, Answer]:
        self._check_open()
        text = _text_of(request)
        if self.dry_run:
            from debrief.tokens import count_tokens

            usual = _USUAL_READING if request.config.response_format else _USUAL_ANSWER
            usage = ModelUsage(input_tokens=count_tokens(text), output_tokens=usual)
            self.meter.count(calls=1, usage=self._priced(usage))
            raise DryRunError(self.name, "a dry run asks nothing")
        response, usage = self._answered(request, len(text))
        said = _words_of(response)
        if cause := self._why_nothing(response, said):
            raise UnusableReplyError(self.name, *cause)
        return response, Answer(
            text=said,
            model=self.name,
            cut=response.finish_reason == "length",
            usage=usage,
        )

    def _answered(
        self, request: Request, letters: int, attempts: int = _UNREADABLE
    ) -> tuple[Response, ModelUsage]:
        """Return the reply to a request and what it took, both counted.

        Args:
            request: to send.
            letters: of its prompt.
            attempts: calls at most, while replies come that have not the form of an answer.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there is no reply after all attempts.
        """
        from dspy.lm15 import LM15Error

        with self.budget.call(letters, self.price) as bill:
            try:
                response = self._retry(self._send, request)
            except LM15Error as error:
                if _is_unreadable(error) and attempts > 1:
                    return self._answered(request, letters, attempts - 1)
                failure = self._failure(error)
                bill.counts = not isinstance(failure, TooLongError)
                raise failure from None
            self._busy = 0
            usage = self._priced(self._usage(response))
            bill.taken = usage.cost_usd
        self.meter.count(calls=1, usage=usage)
        return response, usage

    def _check_open(self) -> None:
        """Raise why the model is asked nothing more, where it is so."""
        if self._closed is not None and time.monotonic() >= self._opens_at:
            self._closed, self._busy = None, 0
        if self._closed is not None:
            raise self._closed

    def _failure(self, error: LM15Error) -> ModelError:
        """Return why there is no answer, with the next move.

        The model is closed where every further question would be refused as well.
        """
        from dspy.lm15 import AuthError, BillingError, ContextLengthError, RateLimitError

        reason = self._reason(error)
        if isinstance(error, ContextLengthError):
            return TooLongError(self.name, reason)
        lasting, move, opens_at = True, NEXT_RUN, math.inf
        if self._program and isinstance(error.__cause__, ProgramError):
            lasting = isinstance(error, AuthError | BillingError)
            move = " ".join(filter(None, (next_move(self._program, error.__cause__), move)))
        elif isinstance(error, AuthError):
            move = f"Check the key. {NEXT_RUN}"
        elif isinstance(error, BillingError):
            move = f"Look at the account. {NEXT_RUN}"
        elif _is_unknown_model(error):
            move = f"Check the name {self.asked_as}{', or the base URL' * bool(self.base_url)}."
        elif isinstance(error, RateLimitError):
            self._busy += 1
            lasting = self._busy >= _BUSY_IN_A_ROW
            if error.retry_after is not None:
                lasting |= error.retry_after > self._longest_wait
                opens_at = time.monotonic() + error.retry_after
                reason = f"{reason}; its limit lasts until {moment_after(error.retry_after)}"
                move = "Run again after that, or name another model."
            else:
                move = "Run again later, or name another model."
        else:
            lasting = False
        kind = UnusableReplyError if _is_unreadable(error) else ModelError
        failure = kind(self.name, reason, move)
        if lasting:
            self._closed, self._opens_at = failure, opens_at
        return failure

    def _why_nothing(self, response: Response, said: str) -> tuple[str, str] | None:
        """Return why an answer without words would come out so again, and the next move.

        None where it has words, and where asking again may help.
        """
        kinds = {part.type for part in response.message.parts}
        another = "Name another model."
        cut = response.finish_reason == "length"
        if self._program or (said.strip() and not (cut and holds_only_thinking(said))):
            return None
        if cut:
            limit = min(self._longest, self.max_tokens)
            reason = f"thought for all {limit:,} tokens that its answer may have, and gave none"
            return reason, "Set a higher DEBRIEF_MAX_TOKENS, or name another model."
        if response.finish_reason == "content_filter":
            return "the provider's content filter kept its answer back", another
        if "refusal" in kinds:
            return "it refuses to answer", another
        if "tool_call" in kinds or response.finish_reason == "tool_call":
            return "it called a tool, and none was offered, instead of answering", another
        if "thinking" in kinds:
            reason = "it ended after its thinking, which is no answer, and said nothing else"
            return reason, "Turn its thinking off where it is served, or name another model."
        return None

    def _send(self, request: Request) -> Response:
        from dspy.lm15 import LM15Error

        with self._slots:
            self._check_open()
            room: int | None = None
            while True:
                fitted = self._fitted(request, room)
                self.meter.count(sent=1)
                try:
                    response = self._once(fitted)
                except LM15Error as error:
                    room = self._answer_limit(fitted, error)
                    if room is None and not self._leaves_out(fitted, error):
                        raise
                else:
                    return response

    def _once(self, request: Request) -> Response:
        """Return what the provider answers to one request.

        Raises:
            UnreadableReplyError: JSON came that has not the form of an answer.
            LM15Error: there is no answer.
        """
        from debrief.models.transport import UnreadableReplyError

        engine = self._route[0]
        try:
            response: Response = engine.complete(request)
        except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
            said = f"its reply has not the form of an answer: {error}"
            raise UnreadableReplyError(said) from error
        return response

    def _fitted(self, request: Request, room: int | None) -> Request:
        """Return a request with the settings that the provider is known to take.

        Args:
            request: as it was asked for.
            room: tokens for its answer as the provider said; None while it did not.
        """
        config = request.config
        if room is None and self._window is not None:
            guess = self._window - len(_text_of(request)) // _LETTERS_A_TOKEN
            room = guess if guess >= _USUAL_READING else None  # else the provider says it exactly
        limits = [limit for limit in (config.max_tokens, self._longest, room) if limit is not None]
        if config.max_tokens is not None:
            config = replace(config, max_tokens=min(limits))
        return replace(request, config=replace(config, **dict.fromkeys(self._refused)))

    def _answer_limit(self, request: Request, error: LM15Error) -> int | None:
        """Return how long this answer may be by the words of a refusal, and remember the limit.

        None when the refusal is not about that.

        Raises:
            ContextLengthError: the prompt leaves no room for an answer.
        """
        from dspy.lm15 import BillingError, ContextLengthError, InvalidRequestError

        sent = request.config.max_tokens
        if sent is None or not isinstance(error, InvalidRequestError | BillingError):
            return None
        said = error.message.partition("\n\n")[0]
        limit = answer_limit(said, sent, guess=isinstance(error, InvalidRequestError))
        if limit is None:
            return None
        if not limit.tokens:
            raise ContextLengthError(said, status=error.status) from error
        if limit.window is None:
            self._longest = limit.tokens
        else:
            self._window = limit.window
        return limit.tokens

    def _leaves_out(self, request: Request, error: LM15Error) -> bool:
        """Return whether a refusal names a setting, which is not sent any more."""
        refused = _refused_setting(request, error)
        if refused is not None:
            self._refused |= {refused}
        return refused is not None

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
        return (
            self._program is not None
            or self.asked_as.startswith("openrouter/")
            or is_recorded(self.name)
        )

    @cached_property
    def _route(self) -> tuple[Any, str]:
        """The client, and the provider that DSPy's own is for; none when LiteLLM is asked.

        Opened by the first request, its connections shared by threads: DSPy's own client where it
        speaks the provider's language, and LiteLLM, which takes seconds to load, where it does not.
        """
        if self._program:
            return ProgramEngine(self._program, timeout=self.timeout), ""
        if is_recorded(self.name):
            return RecordedEngine(self.name), ""
        from dspy.clients.engines import LiteLLMEngine, LM15Engine
        from dspy.lm15 import LM15Error, RouterConfig, Timeouts

        from debrief.models.transport import ReplyTransport

        with suppress(LM15Error):
            provider = str(LM15Engine(RouterConfig(env={})).resolve(self.asked_as).provider)
            if self.api_key and not provider.startswith("azure"):
                limits = RouterConfig(
                    timeouts=Timeouts(read=self.timeout, write=self.timeout, pool=None),
                    max_connections=self.concurrency,
                )
                config = RouterConfig(
                    env={},
                    api_keys={provider: self.api_key},
                    base_urls={provider: self.base_url} if self.base_url else None,
                    transport=ReplyTransport(**limits.transport_kwargs()),
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
        said = " ".join(plain_text(message.partition("\n\n")[0]).split())[:500].rstrip(".")
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


def _words_of(response: Response) -> str:
    """Return the words of an answer, whatever stands beside them; a refusal has none."""
    parts = response.message.parts
    if any(part.type == "refusal" for part in parts):
        return ""
    return "\n".join(part.text for part in parts if part.type == "text")


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later.

    Rate limits, server errors, time limits and broken connections pass, and so does a body that
    is no answer at all: a gateway's page under status 200, half a JSON, nothing. A missing key,
    an empty account, a wrong request and a prompt that is too long do not.
    """
    from dspy import lm15

    if isinstance(error, lm15.AuthError | lm15.BillingError | lm15.InvalidRequestError):
        return False
    if _is_unreadable(error):
        return False
    status = getattr(error, "status", None) or 0
    if 400 <= status < 500 and status not in TEMPORARY_STATUS:
        return False
    return isinstance(error, lm15.ProviderError | lm15.TransportError | lm15.LockTimeoutError)


def _is_unreadable(error: BaseException) -> bool:
    """Return whether a reply came whole and is in no form of the provider's."""
    from debrief.models.transport import UnreadableReplyError

    return isinstance(error, UnreadableReplyError)


def _is_unknown_model(error: LM15Error) -> bool:
    """Return whether a provider does not know the model: by class, status or words."""
    from dspy.lm15 import InvalidRequestError, UnsupportedModelError

    if isinstance(error, UnsupportedModelError) or getattr(error, "status", None) == 404:
        return True
    return isinstance(error, InvalidRequestError) and bool(_UNKNOWN_MODEL.search(error.message))


_UNKNOWN_MODEL = re.compile(
    r"not a valid model|(?:no such|unknown|invalid|unsupported) model"
    r"|model\b.{0,120}?(?:not found|not exist|not supported|not available|is invalid)",
    re.IGNORECASE | re.DOTALL,
)


def _billed(response: Response) -> float | None:
    usage = (response.provider_data or {}).get("usage")
    return number_of(usage.get("cost")) if isinstance(usage, dict) else None

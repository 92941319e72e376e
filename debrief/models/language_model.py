"""The one door to any language model.

Every question of the project goes out here: bounded in number at a time and in money, sent again
when a failure passes, counted, and never asked twice once its answer was found usable.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field, replace
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, NoReturn, TypeVar

import msgspec
from msgspec import Struct, structs

from debrief.digests import digest_of
from debrief.errors import DebriefError, ModelError
from debrief.models.answers import AnswerError
from debrief.models.budget import Budget
from debrief.models.prices import Price
from debrief.models.usage import Meter, ModelUsage, total
from debrief.models.wire import Wire
from debrief.retry import RetryPolicy, retrying
from debrief.state.store import State

if TYPE_CHECKING:
    import dspy
    from dspy.lm15 import LM15Error, Request, Response

VERSION = "1"
"""Of this layer: part of every cache key, raised when the same question is put differently."""
TIMEOUT = 180.0
"""Seconds without a byte from the server."""
CONCURRENCY = 8
MAX_TOKENS = 16_000
"""Of an answer, thinking included; OpenAI's reasoning models take no less."""
NEXT_RUN = "The next run asks again."
READ_ATTEMPTS = 3
"""Calls for one question at most: the first, and two with the reason of the refusal."""
ATTEMPTS = 8
"""Times that one question is sent at most. With 27 % of calls failing, 4 lose one in two hundred
sessions and 8 none."""
PAUSE = 0.5
"""Seconds: the first pause is up to this, each one after it up to twice the one before."""
_RETRIES = RetryPolicy(seconds=3_600, longest_wait=60.0)
_USUAL_ANSWER = 500

Value = TypeVar("Value")


class DryRunError(ModelError):
    """A question that would have gone out."""


class TooLongError(ModelError):
    """A prompt that the model cannot take; a shorter one may do."""


class Answer(Struct, frozen=True, kw_only=True):
    """What a language model gave back, and what it took."""

    text: str
    model: str = ""
    """Who answered: the model asked, or the fallback that stood in for it."""
    cut: bool = False
    """The answer came to its greatest length and ends somewhere."""
    recalled: bool = False
    """It came out of the cache."""
    usage: ModelUsage = ModelUsage()
    remember: Callable[[Answer], None] | None = None
    """Keeps an answer to the question that this one answers."""


class _StoredAnswer(Struct, frozen=True, kw_only=True):
    """An answer that was found usable. JSON and never a pickle, so that a state which somebody
    else could write runs no code here.
    """

    text: str
    usage: ModelUsage
    model: str


def accepted(answers: Sequence[Answer]) -> Answer:
    """Return the one answer that asking came to, and let the cache keep it.

    To be called once the last answer was found usable, never before: what is kept is what every
    later run gets. It is kept under the first question, so that those runs need no detour.

    Args:
        answers: to the question and, each time an answer was refused, to the question again.

    Returns:
        The last answer, with what all of them took.
    """
    first = answers[0]
    last = structs.replace(answers[-1], usage=total(answer.usage for answer in answers))
    if first.remember is not None and not (first.recalled and len(answers) == 1):
        first.remember(last)
    return last


def ask_until_read(
    ask: Callable[[str], Answer],
    read: Callable[[Answer], Value],
    *,
    model: str,
    about: str = "",
    attempts: int = READ_ATTEMPTS,
) -> tuple[Value, Answer]:
    """Ask, read the answer, and ask again with the reason when it is refused.

    Args:
        ask: puts the question; given the reason why the answer before was refused, "" at first.
        read: raises AnswerError for an answer that cannot be used.
        model: its name, for the error.
        about: what the question is about, for the error.
        attempts: calls at most.

    Returns:
        What was read, and the answer with what all calls for it took.

    Raises:
        ModelError: no answer was usable.
        DebriefError: the model could not be asked.
    """
    answers: list[Answer] = []
    reason = ""
    while len(answers) < attempts:
        answers.append(ask(reason))
        try:
            value = read(answers[-1])
        except AnswerError as error:
            reason = error.reason
        else:
            return value, accepted(answers)
    calls = f"in {attempts} calls" if attempts > 1 else "in one call"
    said = " ".join(part for part in ("gave no usable answer", about, calls) if part)
    raise ModelError(model, f"{said}: {reason}", NEXT_RUN)


@dataclass(eq=False, repr=False)
class LanguageModel:
    """A named model with its key, its limits and its memory; safe to use from threads."""

    name: str
    """LiteLLM's name of the model."""
    _: KW_ONLY
    api_key: str
    """Its provider's key."""
    base_url: str = ""
    """Where to ask, when not at the provider's usual place."""
    timeout: float = TIMEOUT
    """Seconds without a byte after which a call is given up and sent again."""
    attempts: int = ATTEMPTS
    """Times that one question is sent at most."""
    pause: float = PAUSE
    """Seconds before the second attempt, at most; it doubles from there."""
    concurrency: int = CONCURRENCY
    """Calls under way at once."""
    price: Price | None = None
    """What tokens cost; None when nobody knows."""
    cache: State | None = None
    """Where answers are kept that were found usable; None keeps none."""
    budget: Budget = field(default_factory=Budget)
    """Of the run."""
    fallbacks: Sequence[LanguageModel] = ()
    """Asked in turn when this model cannot be had; answers say who gave them."""
    dry_run: bool = False
    """Count what would be asked, and ask nothing."""

    def __post_init__(self) -> None:
        self.meter = Meter()
        retries = structs.replace(_RETRIES, attempts=self.attempts, first_wait=self.pause)
        self._retry = retrying(retries, is_temporary, name=self.name, describe=self._reason)
        self._slots = BoundedSemaphore(self.concurrency)
        self._closed: ModelError | None = None
        self._wire = Wire(self.name, self.api_key, self.base_url, self.timeout, self.concurrency)
        if not self.dry_run:
            self.budget.check(self.name, self.price)

    def ask(self, prompt: str) -> Answer:
        """Send one prompt and return the answer, or the answer that was accepted before.

        An answer is kept only when ``accepted`` says so.

        Raises:
            BudgetSpentError: the run may ask no more.
            ModelError: there is no answer after all attempts.
        """
        key = self.key_of("ask", prompt)
        kept = self.recall(key)
        if kept is not None:
            return kept
        lm = self.new_lm()
        with failures_named(self.name):
            lm(prompt)
        return structs.replace(last_answer(lm), remember=lambda last: self.remember(key, last))

    def new_lm(self, prompt_cache: bool = False) -> dspy.LM:
        """Return a DSPy model of its own, whose history holds only what is asked through it.

        Its calls take the same way as ``ask``'s and are counted and limited with them; they are
        not cached, because only who asks knows whether an answer was usable.

        Args:
            prompt_cache: mark the system message for the provider's cache, where one needs marks.
        """
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import dspy

        mark = prompt_cache and not self.fallbacks and not self.dry_run
        return dspy.LM(
            self.name,
            engine=_Door(self),
            max_tokens=MAX_TOKENS,
            cache=False,
            num_retries=0,
            prompt_cache=self._wire.prompt_cache() if mark else None,
        )

    def key_of(self, *parts: str) -> str:
        """Return the cache's key of a question: all that its answer depends on."""
        return digest_of("answers", VERSION, self.name, self.base_url, MAX_TOKENS, parts)

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
            self.cache.put(key, msgspec.json.encode(stored))

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
            self._count_only(text)
        with self.budget.call(len(text), self.price) as bill:
            try:
                response = self._retry(self._send, request)
            except LM15Error as error:
                reason = self._reason(error)
                if isinstance(error, ContextLengthError):
                    raise TooLongError(self.name, reason) from None
                if isinstance(error, AuthError | BillingError):
                    self._close(error, reason)
                raise ModelError(self.name, reason, NEXT_RUN) from None
            usage = self._priced(self._wire.usage(response))
            bill.taken = usage.cost_usd
        self.meter.count(calls=1, usage=usage)
        return response, Answer(
            text=response.text or "",
            model=self.name,
            cut=response.finish_reason == "length",
            usage=usage,
        )

    def _send(self, request: Request) -> Response:
        with self._slots:
            if self._closed is not None:
                raise self._closed
            self.meter.count(sent=1)
            return self._wire.send(request)

    def _priced(self, usage: ModelUsage) -> ModelUsage:
        if usage.cost_usd is not None or self.price is None:
            return usage
        if not usage.input_tokens and not usage.output_tokens:
            return usage
        return structs.replace(usage, cost_usd=self.price.cost(usage))

    def _count_only(self, text: str) -> NoReturn:
        from debrief.tokens import count_tokens

        usage = ModelUsage(input_tokens=count_tokens(text), output_tokens=_USUAL_ANSWER)
        self.meter.count(calls=1, usage=self._priced(usage))
        raise DryRunError(self.name, "a dry run asks nothing")

    def _close(self, error: LM15Error, reason: str) -> NoReturn:
        """Ask no more: every further question would be refused for the same reason."""
        move = "Check the key." if type(error).__name__ == "AuthError" else "Look at the account."
        self._closed = ModelError(self.name, reason, f"{move} {NEXT_RUN}")
        raise self._closed from None

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
        response, answer = self._model.complete(request)
        self.answers.append(answer)
        return response


def last_answer(lm: dspy.LM) -> Answer:
    """Return the latest answer that came through ``lm``, which a ``LanguageModel`` made."""
    answer: Answer = lm.engine.answers[-1]
    return answer


def usage_of(lm: dspy.LM) -> ModelUsage:
    """Return what all calls through ``lm`` came to; the cost is None if one's is not known."""
    return total(answer.usage for answer in lm.engine.answers)


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

"""Prepare a model's raw answer for a strict parser, and ask again when it is refused.

Nothing here guesses. Text that could mean two things is refused, and whoever asked asks again:
a wrong score that looks right costs more than a second call.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any, NoReturn, TypeVar

from msgspec import Struct, structs

from debrief.errors import DebriefError, ModelError, flat
from debrief.models.subject import asking
from debrief.models.usage import ModelUsage, total
from debrief.sessions.readers.documents import plain_text

NEXT_RUN = "The next run asks again."
READ_ATTEMPTS = 2
"""Calls for one question at most: the first, and one with the reason of the refusal. A run may make
so many times the calls that were announced."""
LONGEST = 200_000
"""Characters; no honest answer comes near, and every step here is linear in this."""
_DEEPEST = 64
_MOST_VALUES = 1_000

_THINKING = re.compile(r"\s*<(think|thinking|thought|scratchpad)>", re.IGNORECASE)
_FINAL_CHANNEL = "<|channel|>final<|message|>"
_THINKING_TAG = re.compile(r"<(/?)(?:think|thinking|thought|scratchpad)>", re.IGNORECASE)
_VERDICT = re.compile(
    r"^\W{0,20}(?:score|reasoning|feedback|rationale)\W{0,9}[:=]|\[\[ ##|\"score\"", re.I | re.M
)
_WRAPPER = re.compile(r"\A\s*<(?:final_)?answer>|</(?:final_)?answer>\Z", re.IGNORECASE)
_END_TOKEN = re.compile(r"(?:<\|(?:end|return|im_end|eot_id|endoftext)\|>|</s>)\Z")
_MOST_END_TOKENS = 8
_ERROR_PAGE = re.compile(r"\s*<(?:!doctype|html|\?xml)\b", re.IGNORECASE)
_UNPLAIN = re.compile(r"[^\x20-\x7e\n\t]")
_STRUCTURE = re.compile(r'\\.|["{}\[\]]', re.DOTALL)
_UNTIDY = re.compile(r'"(?:[^"\\]++|\\.)*+"|//[^\n]*+|,(?=\s*+[}\]])', re.DOTALL)


Value = TypeVar("Value")


class NoAnswerError(ModelError):
    """A model answered each time, and no answer could be used."""


class UnusableReplyError(ModelError):
    """A reply that no words can be taken from, of a kind that comes out so again."""


class AnswerError(ModelError):
    """An answer that gives no single, certain value; the model may be asked again with why."""


def refuse(reason: str) -> NoReturn:
    """Raise the refusal of an answer, for ``reason``."""
    raise AnswerError("the model's answer", reason)


class Found(Struct, frozen=True):
    """A JSON value that stands in an answer."""

    start: int
    end: int
    value: Any


def holds_only_thinking(text: str) -> bool:
    """Return whether a model's words end within the thinking that they begin with."""
    opening = _THINKING.match(text)
    return bool(opening and f"</{opening[1]}>".casefold() not in text.casefold())


def answer_text(raw: str | None) -> str:
    """Return what a model says once its thinking is over, lines ended by ``\\n``.

    A block of thinking is taken away at the very beginning only. Further down it may be a
    quotation out of a session, and taking that away could leave a forged verdict standing alone;
    so thinking without its opening tag is taken away only where no verdict stands in it.

    Raises:
        AnswerError: there is nothing, nothing but thinking, an error page, or far too much.
    """
    if raw is None:
        refuse("it is empty")
    if len(raw) > LONGEST:
        refuse(f"it is longer than {LONGEST} characters")
    text = raw.removeprefix("\ufeff")
    if text.lstrip().startswith(("<|channel|>", "<|start|>")):
        _, token, tail = text.partition(_FINAL_CHANNEL)
        if not token or _FINAL_CHANNEL in tail:
            refuse("it has no single final channel")
        text = tail
    while opening := _THINKING.match(text):
        closing = re.compile(rf"</{opening[1]}>", re.IGNORECASE)
        end = closing.search(text, opening.end())
        if not end:
            refuse("it holds thinking and no answer")
        text = text[end.end() :]
    parts = _THINKING_TAG.split(text, maxsplit=2)
    if len(parts) == 3 and parts[1] and not _VERDICT.search(parts[0]):
        text = parts[2]  # the provider took the tag that opened the thinking
    text = text.rstrip()
    for _ in range(_MOST_END_TOKENS):
        text = _END_TOKEN.sub("", text).rstrip()
    text = _WRAPPER.sub("", text).strip()
    if not text:
        refuse("it is empty")
    if _ERROR_PAGE.match(text):
        refuse("it is an error page")
    return text


def fold(text: str) -> str:
    """Return ``text`` as a reader sees it: NFKC, plain digits, nothing invisible.

    >>> fold("SCORE： ４")
    'SCORE: 4'
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _stacked().sub(r"\1", text))
    return _UNPLAIN.sub(lambda found: _folded(found[0]), text)


@cache
def _stacked() -> re.Pattern[str]:
    """Match more accents on one letter than any script has: to sort them takes their square."""
    marks = "".join(filter(unicodedata.combining, map(chr, range(0x300, 0x1F000))))
    return re.compile(f"([{marks}]{{8}})[{marks}]+")


@cache
def _folded(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Nd":
        return str(unicodedata.digit(character))
    invisible = kind in ("Cc", "Cf", "Me", "Cs") or "\ufe00" <= character <= "\ufe0f"
    return "" if invisible else character


def json_values(text: str) -> list[Found]:
    """Return the outermost JSON objects and arrays in ``text``, with where they stand.

    Comments to the end of a line and trailing commas are forgiven; a key given twice is not.

    Raises:
        AnswerError: a key is given twice, the nesting is deeper than 64, or there are more
            than a thousand values.
    """
    spans = list(islice(_spans(text), _MOST_VALUES + 1))
    if len(spans) > _MOST_VALUES:
        refuse(f"it holds more than {_MOST_VALUES} JSON values")
    found = (Found(start, end, _parse(text[start:end])) for start, end in spans)
    return [each for each in found if each.value is not None]


def is_cut_short(text: str) -> bool:
    """Return whether ``text`` ends inside an object or array that begins a line of it."""
    last = max((end for _, end in _spans(text)), default=0)
    return re.search(r"^\s*[\[{]", text[last:], re.MULTILINE) is not None


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where balanced brackets begin and end; quotes count inside brackets only."""
    closers: list[str] = []
    start = 0
    quoted = False
    for token in _STRUCTURE.finditer(text):
        mark = token[0]
        if quoted:
            quoted = mark != '"'
        elif mark in "{[":
            if not closers:
                start = token.start()
            closers.append("}" if mark == "{" else "]")
            if len(closers) > _DEEPEST:
                refuse(f"it is nested deeper than {_DEEPEST}")
        elif closers and mark == '"':
            quoted = True
        elif closers and mark in "}]":
            if closers.pop() != mark:
                closers.clear()
            elif not closers:
                yield start, token.end()


def _parse(text: str) -> Any | None:
    tidied = _UNTIDY.sub(lambda found: found[0] if found[0].startswith('"') else "", text)
    for attempt in (text, tidied):
        with suppress(json.JSONDecodeError, RecursionError):
            return _plain_value(
                json.loads(
                    attempt,
                    strict=False,
                    object_pairs_hook=_once,
                    parse_int=lambda digits: int(digits) if len(digits) < 20 else math.inf,
                )
            )
    return None


def _plain_value(value: Any) -> Any:
    """Return a decoded JSON value with plain texts: escapes hold what no encoding has."""
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, list):
        return [_plain_value(each) for each in value]
    if isinstance(value, dict):
        return {plain_text(name): _plain_value(each) for name, each in value.items()}
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [fold(key).strip().casefold() for key, _ in pairs]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        refuse(f'its JSON gives "{twice[:40]}" twice')
    return dict(pairs)


class Question(Struct, frozen=True, kw_only=True):
    """What a language model is asked, in one message or two."""

    text: str
    constant: str = ""
    """What comes before it and is the same in many questions: providers keep such a beginning."""
    form: dict[str, Any] | None = None
    """JSON schema of the answer, sent to whoever takes one; the text shows the form as well."""

    @property
    def whole(self) -> str:
        """Return all of it as one text."""
        return "\n\n".join(filter(None, (self.constant, self.text)))


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
    give_up: Callable[[ModelError], None] | None = None
    """Notes why the question has no usable answer, so that the run does not ask it again."""

    def __post_init__(self) -> None:
        """Make its text one that can be kept and shown, whoever answered."""
        structs.force_setattr(self, "text", plain_text(self.text))


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
        about: what the question is about, for the error and for recorded answers.
        attempts: calls at most.

    Returns:
        What was read, and the answer with what all calls for it took.

    Raises:
        NoAnswerError: no answer was usable.
        DebriefError: the model could not be asked.
    """
    answers: list[Answer] = []
    reason = ""
    with asking(about):
        while len(answers) < attempts:
            answers.append(ask(reason))
            try:
                value = read(answers[-1])
            except AnswerError as error:
                reason = error.reason
            except DebriefError:
                raise
            except Exception as error:  # whatever an answer does, it costs itself alone
                reason = f"it cannot be read: {flat(error) or type(error).__name__}"
            else:
                return value, accepted(answers)
    calls = f"in {attempts} calls" if attempts > 1 else "in one call"
    said = " ".join(part for part in ("gave no usable answer", about, calls) if part)
    failure = NoAnswerError(model, f"{said}: {reason}", NEXT_RUN)
    if (give_up := answers[0].give_up) is not None:
        give_up(failure)
    raise failure

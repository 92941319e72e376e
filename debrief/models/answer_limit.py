"""Read from a provider's refusal how long an answer may be.

Each provider words it in its own way; all of them name the limit, or the numbers it follows from:

- ``max_tokens is too large: 64000. This model supports at most 16384 completion tokens``
- ``maximum context length is 16384 tokens and your request has 2989 input tokens``
"""

from __future__ import annotations

import re

from msgspec import Struct

LEAST_ANSWER = 500
"""Tokens below which no judgement fits, so that the prompt has to be shortened instead."""

_ABOUT_THE_ANSWER = re.compile(
    r"max_?(?:completion_?|output_?|new_?)?tokens"
    r"|(?:completion|output) tokens|in the (?:completion|output)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.-]*\w)")
_ADDED_UP = re.compile(r"(\d+) \+ (\d+) > (\d+)")
_TAKEN_AWAY = re.compile(r"(\d+) > (\d+) - (\d+)")
_WINDOW = re.compile(r"context (?:length|window|limit|size)\D{0,40}?(\d+)", re.IGNORECASE)
_PROMPT = re.compile(
    r"(\d+) (?:input tokens|prompt tokens|(?:tokens )?(?:in|from|of) the (?:messages|prompt|input)"
    r"|of text input)",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"requested (?:about )?(\d+) tokens", re.IGNORECASE)


class AnswerLimit(Struct, frozen=True):
    """How long an answer may be."""

    tokens: int
    """For the request that was refused; 0 when its prompt leaves no room for an answer."""
    window: int | None = None
    """Tokens of prompt and answer together, where the limit follows from the prompt's length."""


def answer_limit(said: str, sent: int, *, guess: bool = True) -> AnswerLimit | None:
    """Return the limit that a refusal names; None when it is not about an answer's length.

    Args:
        said: the provider's message.
        sent: tokens that the request allowed.
        guess: take half of what was sent where the message names no number.

    >>> answer_limit("max_tokens: 64000 > 8192, the maximum for claude-3-5-haiku-20241022", 64000)
    AnswerLimit(tokens=8192, window=None)
    """
    if not _ABOUT_THE_ANSWER.search(said):
        return None
    text = re.sub(r"(?<=\d)[,_](?=\d{3}\b)", "", said)
    if (limit := _by_window(text, sent)) is not None:
        return limit
    numbers = [int(found) for found in _NUMBER.findall(text)]
    fitting = [number for number in numbers if LEAST_ANSWER <= number < sent]
    if fitting:
        return AnswerLimit(max(fitting) - ("exclusive" in text))
    return AnswerLimit(sent // 2) if guess and sent // 2 >= LEAST_ANSWER else None


def _by_window(text: str, sent: int) -> AnswerLimit | None:
    """Return what the prompt leaves of the context window, where a refusal tells both."""
    window = prompt = None
    if found := _ADDED_UP.search(text):
        window = int(found[3])
        prompt = next((int(part) for part in found.groups()[:2] if int(part) != sent), None)
    elif found := _TAKEN_AWAY.search(text):
        window, prompt = int(found[2]), int(found[3])
    elif found := _WINDOW.search(text):
        window = int(found[1])
        if counted := _PROMPT.search(text):
            prompt = int(counted[1])
        elif whole := _WHOLE.search(text):
            prompt = int(whole[1]) - sent
    if window is None or prompt is None:
        return None
    room = window - prompt
    if room >= sent:
        return None
    return AnswerLimit(room if room >= LEAST_ANSWER else 0, window)

"""Split a long session's line into windows that fit a token budget.

A window of a long conversation is a conversation itself: it begins with the system message and a
prompt and ends on an assistant message without calls. It is cut between turns where it can be; a
turn that is too long by itself is cut between its steps (an assistant message with its results),
the prompt being repeated with a remark; and of a step that is too long the thinking is left out,
where it counts, and the results are cut. A step whose calls alone are over the budget is left out,
as arguments cannot be cut and stay arguments; what follows it begins with the remark.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.keys import digest_of
from debrief.tokens import count_tokens
from debrief.training.conversations import (
    NO_PROMPT,
    encode,
    ending_on_words,
    is_trained_on,
    marked,
    moved,
    persons_words,
)
from debrief.training.formats import without_uncalled
from debrief.training.given import without_reminder
from debrief.training.model import (
    ChatMessage,
    Lengths,
    LineRow,
    Role,
    SampleLine,
    ToolSchema,
)

AROUND_A_LINE, AROUND_A_MESSAGE = 128, 32
"""Tokens that chat templates write, as measured on Qwen's, of which none of 960 lines of real
sessions came out over; GLM's and gpt-oss's write a little more. They indent tools, which makes them
a third longer."""

CONTINUED = "(continued: earlier steps on this are not shown)"
TRUNCATED = "... (truncated)"

_LEAST = 4
_NO_ROOM = (
    "what the model was given before the first prompt leaves less than a quarter of the tokens"
)

Messages = Sequence[ChatMessage]
Count = Callable[[str], int]


def samples_of(
    sample: SampleLine, max_tokens: int, reminder: str = "", *, thinking: bool = False
) -> tuple[SampleLine, ...]:
    """Return a session's line as lines of at most ``max_tokens`` each, itself when it fits.

    Counted are the texts and calls, the tools, and what chat templates usually write around them,
    as a trainer cuts off what is over its limit. Tools that were declared to the session and never
    called give way where all of them would leave less than half of the tokens. The metadata speaks
    of the whole session on each line, but for ``window``.

    Args:
        sample: of a session.
        max_tokens: of each line.
        reminder: what its first prompt begins with, and that of each window is to.
        thinking: what the model thought counts; exports leave it out unless asked for it.

    Raises:
        InputError: the tools, or what the model was given before the first prompt, leave less than
            a quarter of the tokens, or nothing fits.
    """

    def beside(tools: tuple[ToolSchema, ...]) -> int:
        return max_tokens - tokens_beside(encode(tools).decode())

    culprit = f"session {sample.metadata.session_id}"
    left = beside(sample.tools)
    if left < max_tokens / 2:
        calls = (call for message in sample.messages for call in message.tool_calls or ())
        called = {call.function.name for call in calls}
        sample = replace(sample, tools=without_uncalled(sample.tools, called))
        left = beside(sample.tools)
    if left < max_tokens / _LEAST:
        raise InputError(culprit, f"its tools leave less than a quarter of {max_tokens} tokens")
    # The same texts are counted whole, by turn and by step.
    count = cache(count_tokens)
    parts = windows_of(sample.messages, left, count, AROUND_A_MESSAGE, reminder, thinking=thinking)
    if not parts:
        raise InputError(culprit, f"nothing of it fits {max_tokens} tokens")
    whole = sample.metadata
    numbered = (replace(whole, window=n, windows=len(parts)) for n in range(1, len(parts) + 1))
    return tuple(
        replace(sample, messages=messages, metadata=metadata)
        for messages, metadata in zip(parts, numbered, strict=True)
    )


@lru_cache(maxsize=32)
def tokens_beside(tools: str) -> int:
    """Return the tokens of a line beside its messages: of its tools, as JSON, which most lines of
    a set share, and of what chat templates write around a line."""
    return AROUND_A_LINE + count_tokens(tools) * 4 // 3


def tokens_of(messages: Messages, count: Count, *, thinking: bool = False) -> int:
    """Return the tokens of the messages' texts, their calls' names and arguments, and, where it
    counts, what the model thought."""
    total = 0
    for message in messages:
        total += count(message.content)
        total += count(message.reasoning_content) if thinking else 0
        for call in message.tool_calls or ():
            total += count(call.function.name) + count(call.function.arguments)
    return total


def windows_of(
    messages: Messages,
    budget: int,
    count: Count,
    beside: int = 0,
    reminder: str = "",
    *,
    thinking: bool = False,
) -> tuple[tuple[ChatMessage, ...], ...]:
    """Return the windows of a conversation, in order: itself alone when it fits.

    Args:
        messages: a closed conversation.
        budget: the most tokens that a window may have.
        count: counts the tokens of a text.
        beside: tokens of each message beside its text and its calls' names and arguments.
        reminder: what the first prompt begins with, and that of each window is to.
        thinking: what the model thought counts.

    Raises:
        InputError: the system message and the reminder leave less than a quarter of the budget.
    """
    if tokens_of(messages, count, thinking=thinking) + beside * len(messages) <= budget:
        return (tuple(messages),)
    return _Cutter(messages, budget, count, beside, reminder, thinking).windows()


@dataclass
class _Cutter:
    messages: Messages
    budget: int
    count: Count
    beside: int
    reminder: str
    thinking: bool

    def __post_init__(self) -> None:
        self._system = [message for message in self.messages[:1] if message.role == "system"]
        self._turns = _split(self.messages[len(self._system) :], "user")
        first = self._turns[0]
        if first[0].content.startswith(self.reminder):
            first[0] = moved(first[0], "", len(self.reminder))
        # Every window may need a closing message of ours.
        closing = self._size(ending_on_words([ChatMessage(role="tool", content="")])[1:])
        self._room = self.budget - self._size(self._system) - self.count(self.reminder) - closing
        if self._room < self.budget / _LEAST:
            raise InputError("the conversation", _NO_ROOM)
        self._windows: list[list[ChatMessage]] = []
        self._current: list[ChatMessage] = []
        self._used = 0

    def windows(self) -> tuple[tuple[ChatMessage, ...], ...]:
        for turn in self._turns:
            size = self._size(turn)
            if self._used + size > self._room:
                self._close()
            if size <= self._room:
                self._add(turn)
            else:
                self._add_in_pieces(turn)
        self._close()
        return tuple(
            marked([*self._system, *window]) for window in self._windows if is_trained_on(window)
        )

    def _add_in_pieces(self, turn: Messages) -> None:
        limit = self._room // 4 - self.beside
        prompt, words = turn[0], persons_words(turn[0])
        if prompt.machine and words and self.count(prompt.content) > limit:
            # The person's words come last, and are cut last.
            prompt = replace(prompt, content=f"{TRUNCATED}\n\n{words}", machine=())
        prompt = self._cut(prompt, limit)
        again = replace(prompt, content=f"{prompt.content}\n\n{CONTINUED}")
        self._add([prompt])
        for step in _split(turn[1:], "assistant"):
            if self._used + self._size(step) > self._room and len(self._current) > 1:
                self._close()
                self._add([again])
            fitted = self._fitted(step)
            if not fitted:
                self._clear()
            self._add(fitted or [again])
        if len(self._current) == 1:
            self._clear()

    def _fitted(self, step: Messages) -> Messages:
        """Return a step so that it fits beside the prompt; nothing when it cannot."""
        left = self._room - self._used
        if self._size(step) <= left:
            return step
        said, results = step[0], step[1:]
        said = replace(said, reasoning_content="") if self.thinking else said
        if self._size([said, *results]) <= left:
            return [said, *results]
        if not results:
            return [self._cut(said, left - self.beside)]
        left -= self._size([said])
        share = left // len(results) - self.beside
        if share <= self.count(f"\n{TRUNCATED}"):
            return []
        return [said, *(self._cut(result, share) for result in results)]

    def _cut(self, message: ChatMessage, limit: int) -> ChatMessage:
        """Return a message with at most ``limit`` tokens of text."""
        text = message.content
        size = self.count(text)
        kept = len(text)
        while size > limit and kept:
            kept = min(kept - 1, kept * limit // size)
            text = f"{message.content[:kept]}\n{TRUNCATED}"
            size = self.count(text)
        machine = ((start, min(end, kept)) for start, end in message.machine if start < kept)
        return replace(message, content=text, machine=tuple(machine))

    def _size(self, messages: Messages) -> int:
        tokens = tokens_of(messages, self.count, thinking=self.thinking)
        return tokens + self.beside * len(messages)

    def _add(self, messages: Messages) -> None:
        self._current += messages
        self._used += self._size(messages)

    def _close(self) -> None:
        if len(self._current) > 1:
            prompt, *answers = ending_on_words(self._current)
            prompt = moved(prompt, self.reminder, 0)
            self._windows.append([prompt, *answers])
        self._clear()

    def _clear(self) -> None:
        self._current, self._used = [], 0


def _split(messages: Messages, role: Role) -> list[list[ChatMessage]]:
    """Return messages in parts, each of which begins with one of ``role``."""
    parts: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == role:
            parts.append([])
        parts[-1].append(message)
    return parts


CONTEXTS = (4_096, 8_192, 32_768, 131_072)
HEADER = ("context", "lines whole", "answers' tokens kept", "lines with none to train on")


def _lengths(messages: Messages, sizes: Sequence[int], end: int) -> Lengths:
    """Return the lengths of a line whose messages begin after ``end`` tokens."""
    trained, kept = 0, [0] * len(CONTEXTS)
    for message, size in zip(messages, sizes, strict=True):
        end += size + AROUND_A_MESSAGE
        if message.role == "assistant" and message.weight != 0:
            trained += size
            for place, context in enumerate(CONTEXTS):
                kept[place] += max(0, size - max(0, end - context))
    return Lengths(tokens=end, trained=trained, kept=tuple(kept))


class ContextTable:
    """What contexts keep of lines, counted as they go by.

    Args:
        trained: tokens of the answers that are trained on, before anything was cut or left out.
    """

    def __init__(self, trained: int) -> None:
        self.lines = 0
        self._trained = trained
        self._kept, self._whole, self._empty = ([0] * len(CONTEXTS) for _ in range(3))

    def add(self, lengths: Lengths) -> None:
        """Count a line in."""
        self.lines += 1
        for place, context in enumerate(CONTEXTS):
            self._kept[place] += lengths.kept[place]
            self._whole[place] += lengths.tokens <= context
            self._empty[place] += not lengths.kept[place]

    def rows(self) -> list[tuple[str, ...]]:
        """Return a row for each context, to stand below ``HEADER``."""
        return [
            (
                f"{context:,}",
                f"{self._whole[place]:,} of {self.lines:,}",
                f"{self._kept[place] / max(1, self._trained):.1%}",
                f"{self._empty[place]:,}",
            )
            for place, context in enumerate(CONTEXTS)
        ]


_STAND_IN = re.compile(re.escape(NO_PROMPT) + r"|\(\d+ images?\)")


def opening_of(sample: SampleLine, line: bytes) -> str:
    """Return the digest of a line's repository and the person's first words; of the line if these
    are not known."""
    prompt = next(persons_words(message) for message in sample.messages if message.role == "user")
    words = without_reminder(prompt)
    if sample.metadata.window > 1 or not words.strip() or _STAND_IN.match(words):
        return hashlib.sha256(line).hexdigest()
    return digest_of(sample.metadata.repository, words.split())


def line_row(sample: SampleLine, line: bytes, offset: int) -> LineRow:
    """Return the row of a line that stands at an offset of a file."""
    metadata, messages, count = sample.metadata, sample.messages, cache(count_tokens)
    beside = tokens_beside(encode(sample.tools).decode())
    words, with_thinking = (
        [tokens_of([message], count, thinking=thinking) for message in messages]
        for thinking in (False, True)
    )
    return LineRow(
        session_id=metadata.session_id,
        parent_session=metadata.parent_session,
        tool=metadata.tool,
        tool_version=metadata.tool_version,
        model=metadata.model,
        repository=metadata.repository,
        licence=metadata.licence,
        kind=metadata.kind,
        started=datetime.fromisoformat(metadata.started),
        ended=datetime.fromisoformat(metadata.ended),
        window=metadata.window,
        split=metadata.split,
        status=metadata.status,
        verdict=metadata.verdict,
        quality=metadata.quality,
        offset=offset,
        size=len(line),
        opening=opening_of(sample, line),
        messages=len(messages),
        tokens=sum(words),
        lengths=tuple(_lengths(messages, sizes, beside) for sizes in (words, with_thinking)),
        digest=hashlib.sha256(line).hexdigest(),
    )

"""Long conversations as several that fit a budget of tokens and are conversations themselves.

A window begins with the system message and a prompt and ends on an assistant message without
calls. It is cut between turns where it can be; a turn that is too long by itself is cut between
its steps (an assistant message with its results), the prompt being repeated with a remark; and
of a step that is too long the results are cut. A step whose calls alone are over the budget is
left out, as arguments cannot be cut and stay arguments; what follows it begins with the remark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from debrief.errors import InputError
from debrief.training.conversations import ending_on_words, is_trained_on, marked
from debrief.training.model import ChatMessage

CONTINUED = "(continued: earlier steps on this are not shown)"
TRUNCATED = "... (truncated)"

Messages = Sequence[ChatMessage]
Count = Callable[[str], int]


def tokens_of(messages: Messages, count: Count) -> int:
    """Return the tokens of the messages' texts, their calls' names and arguments."""
    total = 0
    for message in messages:
        total += count(message.content)
        for call in message.tool_calls or ():
            total += count(call.function.name) + count(call.function.arguments)
    return total


def windows_of(
    messages: Messages, budget: int, count: Count, beside: int = 0
) -> tuple[tuple[ChatMessage, ...], ...]:
    """Return the windows of a conversation, in order: itself alone when it fits.

    Args:
        messages: a closed conversation.
        budget: the most tokens that a window may have.
        count: counts the tokens of a text.
        beside: tokens of each message beside its text and its calls' names and arguments.

    Raises:
        InputError: the system message leaves less than half of the budget.
    """
    if tokens_of(messages, count) + beside * len(messages) <= budget:
        return (tuple(messages),)
    return _Cutter(messages, budget, count, beside).windows()


class _Cutter:
    def __init__(self, messages: Messages, budget: int, count: Count, beside: int) -> None:
        self._count = count
        self._beside = beside
        self._system = [message for message in messages[:1] if message.role == "system"]
        self._turns = _turns(messages[len(self._system) :])
        # Every window may need a closing message of ours.
        closing = self._size(ending_on_words([ChatMessage(role="tool", content="")])[1:])
        self._budget = budget - self._size(self._system) - closing
        if self._budget < budget / 2:
            raise InputError(
                "the system message", f"leaves less than half of {budget} tokens for the rest"
            )
        self._windows: list[list[ChatMessage]] = []
        self._current: list[ChatMessage] = []
        self._used = 0

    def windows(self) -> tuple[tuple[ChatMessage, ...], ...]:
        for turn in self._turns:
            size = self._size(turn)
            if self._used + size > self._budget:
                self._close()
            if size <= self._budget:
                self._add(turn)
            else:
                self._add_in_pieces(turn)
        self._close()
        return tuple(
            marked([*self._system, *window]) for window in self._windows if is_trained_on(window)
        )

    def _add_in_pieces(self, turn: Messages) -> None:
        prompt = self._cut(turn[0], self._budget // 4 - self._beside)
        again = replace(prompt, content=f"{prompt.content}\n\n{CONTINUED}")
        self._add([prompt])
        for step in _steps(turn[1:]):
            if self._used + self._size(step) > self._budget and len(self._current) > 1:
                self._close()
                self._add([again])
            fitted = self._fitted(step)
            if not fitted:
                self._current, self._used = [], 0
            self._add(fitted or [again])
        if len(self._current) == 1:
            self._current, self._used = [], 0

    def _fitted(self, step: Messages) -> Messages:
        """Return a step so that it fits beside the prompt; nothing when it cannot."""
        left = self._budget - self._used
        if self._size(step) <= left:
            return step
        said, results = step[0], step[1:]
        if not results:
            return [self._cut(said, left - self._beside)]
        left -= self._size([said])
        share = left // len(results) - self._beside
        if share <= self._count(f"\n{TRUNCATED}"):
            return []
        return [said, *(self._cut(result, share) for result in results)]

    def _cut(self, message: ChatMessage, limit: int) -> ChatMessage:
        """Return a message with at most ``limit`` tokens of text."""
        text = message.content
        size = self._count(text)
        kept = len(text)
        while size > limit and kept:
            kept = min(kept - 1, kept * limit // size)
            text = f"{message.content[:kept]}\n{TRUNCATED}"
            size = self._count(text)
        return replace(message, content=text)

    def _size(self, messages: Messages) -> int:
        return tokens_of(messages, self._count) + self._beside * len(messages)

    def _add(self, messages: Messages) -> None:
        self._current += messages
        self._used += self._size(messages)

    def _close(self) -> None:
        if len(self._current) > 1:
            self._windows.append(ending_on_words(self._current))
        self._current, self._used = [], 0


def _turns(messages: Messages) -> list[list[ChatMessage]]:
    turns: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "user":
            turns.append([])
        turns[-1].append(message)
    return turns


def _steps(messages: Messages) -> list[list[ChatMessage]]:
    steps: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "assistant":
            steps.append([])
        steps[-1].append(message)
    return steps

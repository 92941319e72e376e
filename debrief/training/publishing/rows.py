"""Rows for trainers without loss weights: each trained message with all that came before.

A line may hold answers that are not trained on. Nothing is cut out of it for that: a row is the
line up to the end of a stretch of answers that are trained on, and says where the stretch begins.
So a line gives as many rows as it has such stretches, and each repeats the history of those before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from debrief.training.conversations import TURN_ENDED
from debrief.training.model import ChatMessage

Messages = Sequence[ChatMessage]


class Row(Struct, frozen=True):
    """Messages from the beginning of a line on."""

    history: Messages
    """Not trained on; ends on a request or on a call's result."""
    answers: Messages
    """Begins and ends on an answer; all answers in it are trained on."""


def rows_of(messages: Messages) -> list[Row]:
    """Return a row for each stretch of answers that are trained on.

    The texts that stand for the end of a turn that was not recorded are in none of them.
    """
    return list(_rows(without_ends(messages)))


def first_row(messages: Messages) -> list[Row]:
    """Return the line up to the first answer that is not trained on, which may be such a text: for
    trainers that train on every answer of a row. None when that is the first one."""
    return [row for row in _rows(messages) if not any(map(is_answer, row.history))]


def _rows(messages: Messages) -> Iterator[Row]:
    start = end = 0
    """Of the stretch; the same where there is none."""
    for place, message in enumerate(messages):
        if is_trained(message):
            start = start if end > start else place
            end = place + 1
        elif is_untrained(message) and end > start:
            yield Row(messages[:start], messages[start:end])
            start = end
    if end > start:
        yield Row(messages[:start], messages[start:end])


def is_answer(message: ChatMessage) -> bool:
    """Return whether the model said it, or a text stands for its words."""
    return message.role == "assistant"


def is_trained(message: ChatMessage) -> bool:
    """Return whether it is an answer that is trained on."""
    return is_answer(message) and message.weight != 0


def is_untrained(message: ChatMessage) -> bool:
    """Return whether it is an answer that is not trained on."""
    return is_answer(message) and message.weight == 0


def up_to_the_last_answer(messages: Messages) -> Messages:
    """Return messages without what follows the last answer."""
    end = len(messages)
    while end and not is_answer(messages[end - 1]):
        end -= 1
    return messages[:end]


def without_ends(messages: Messages) -> Messages:
    """Return messages without the texts that stand for ends of turns: nobody said those."""
    ends = {
        place
        for place, (before, message) in enumerate(pairwise(messages), 1)
        if before.role == "tool" and message.weight == 0 and message.content == TURN_ENDED
    }
    return (
        [message for place, message in enumerate(messages) if place not in ends]
        if ends
        else messages
    )


class RowCounts:
    """What came of an export's lines as rows, counted from what was written.

    Args:
        rows: makes them of a line's messages.
    """

    def __init__(self, rows: Callable[[Messages], Iterable[Row]]) -> None:
        self._rows = rows
        self.lines = self.made = 0
        self.known = self.trained = self.wrong = 0
        """Answers that are to be trained on, those of them that are, and others that are."""
        self.cut = 0
        """Requests that were cut out of the middle."""
        self._before = self._after = 0

    def add(self, messages: Messages) -> None:
        """Count a line in."""
        self.lines += 1
        self.known += sum(map(is_trained, messages))
        self._before += sum(map(_length, messages))
        for row in self._rows(messages):
            written = [*row.history, *row.answers]
            end = next(end for end, message in enumerate(messages, 1) if message is written[-1])
            self.made += 1
            self.trained += sum(map(is_trained, row.answers))
            self.wrong += sum(map(is_untrained, row.answers))
            self.cut += _requests(messages[:end]) - _requests(written)
            self._after += sum(map(_length, written))

    @property
    def grown(self) -> float:
        """Return how many times as long the messages of all rows are as those of the lines."""
        return self._after / max(1, self._before)


def _length(message: ChatMessage) -> int:
    calls = (call.function for call in message.tool_calls or ())
    return len(message.content) + sum(len(call.name) + len(call.arguments) for call in calls)


def _requests(messages: Iterable[ChatMessage]) -> int:
    return sum(message.role == "user" for message in messages)

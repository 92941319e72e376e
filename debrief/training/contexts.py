"""What is left of training lines when a trainer cuts them at its context.

Trainers cut a line that is too long without a word, and what they cut off is mostly what there is
to learn. So each stored line has its lengths beside it, and an export shows what usual contexts
keep before it writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from debrief.training.model import ChatMessage
from debrief.training.windows import AROUND_A_MESSAGE, Count, tokens_beside, tokens_of

CONTEXTS = (4_096, 8_192, 32_768, 131_072)
HEADER = ("context", "lines whole", "answers' tokens kept", "lines with none to train on")


class Lengths(Struct, frozen=True, kw_only=True):
    """The tokens (o200k_base) of a line, with its tools and what chat templates usually write."""

    tokens: int
    trained: int
    """Of the answers that are trained on."""
    kept: tuple[int, ...]
    """Of these, within each of ``CONTEXTS``."""


def lengths_of(
    messages: Sequence[ChatMessage], tools: str, count: Count
) -> tuple[Lengths, Lengths]:
    """Return the lengths of a line without the model's thinking, and with it.

    Args:
        messages: of the line.
        tools: of the line, as JSON.
        count: counts the tokens of a text.
    """
    beside = tokens_beside(tools)
    words, both = (
        [tokens_of([message], count, thinking=thinking) for message in messages]
        for thinking in (False, True)
    )
    return _lengths(messages, words, beside), _lengths(messages, both, beside)


def _lengths(messages: Sequence[ChatMessage], sizes: Sequence[int], end: int) -> Lengths:
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

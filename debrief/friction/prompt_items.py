"""The items of a CLAUDE.md or AGENTS.md: a point of a list, a heading, or a paragraph, each whole.

A point may go on over several lines, so a line of the file is not always a sentence.
"""

from __future__ import annotations

import re

from msgspec import Struct

_BEGINS = re.compile(r"\s*(?:[-*+]\s|\d{1,3}[.)]\s|#{1,6}\s|>|\||```|~~~|<!--)")
_ALONE = re.compile(r"\s*(?:#{1,6}\s|```|~~~|<!--)")
"""What a following line is no part of."""


class PromptItem(Struct, frozen=True):
    """One item, and the lines of the file that it takes."""

    text: str
    """On one line, with its list mark."""
    first: int
    end: int
    """The line after its last one; both count from 0."""


def items_of(text: str) -> list[PromptItem]:
    """Return the items of a prompt file that hold words, in order.

    >>> [item.text for item in items_of("- Read it\\n  first.\\n- Test.")]
    ['- Read it first.', '- Test.']
    """
    found: list[PromptItem] = []
    is_open = False
    for number, line in enumerate(text.splitlines()):
        words = " ".join(line.split())
        if not words:
            is_open = False
        elif is_open and not _BEGINS.match(line):
            last = found[-1]
            found[-1] = PromptItem(f"{last.text} {words}", last.first, number + 1)
        else:
            found.append(PromptItem(words, number, number + 1))
            is_open = _ALONE.match(line) is None
    return found

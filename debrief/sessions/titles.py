"""What a session is called in lists."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_FIRST = 3
"""Requests that are looked at: the first of a resumed session is often not what it was about."""


def title_of(own: str, prompts: Iterable[str]) -> str:
    """Return the title that a session has itself, else the longest of its first three requests.

    >>> title_of("", ["hello", "Write a file about geese.", "Thanks!"])
    'Write a file about geese.'
    """
    asked = islice((prompt for prompt in prompts if prompt.strip()), _FIRST)
    return own or max(asked, key=len, default="")

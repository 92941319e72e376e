"""What a session is called in lists."""

from __future__ import annotations

from collections.abc import Iterable

_FEWEST = 3
"""Words of a request that says what it is about."""


def title_of(own: str, prompts: Iterable[str]) -> str:
    """Return the title that a session has itself, else its first request that says something.

    A greeting or a lone command names nothing, so one of fewer than three words gives way to the
    first that is longer.

    >>> title_of("", ["hello", "Write a file about geese."])
    'Write a file about geese.'
    """
    asked = [prompt for prompt in prompts if prompt.strip()]
    said = (prompt for prompt in asked if len(prompt.split(None, _FEWEST)) >= _FEWEST)
    return own or next(said, "") or next(iter(asked), "")

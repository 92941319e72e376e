"""Keep what a costly search found, by a digest of what was searched."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from debrief.keys import digest_of

Searched = TypeVar("Searched")
Found = TypeVar("Found")
_MOST = 100_000


def by_digest(search: Callable[[Searched], Found]) -> Callable[[Searched], Found]:
    """Have a search of the same value done once a process, however many stages ask for it.

    Digests are kept and not the values, which may be large; all are forgotten when there are
    100,000.

    Args:
        search: of a value that msgspec encodes; what it finds depends on nothing else.
    """
    known: dict[str, Found] = {}

    @wraps(search)
    def remembered(value: Searched) -> Found:
        key = digest_of(value)
        if key not in known:
            if len(known) >= _MOST:
                known.clear()
            known[key] = search(value)
        return known[key]

    return remembered

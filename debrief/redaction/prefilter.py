"""Where to look: one pass of a multi-pattern engine over the bytes of a text.

The engine (Hyperscan, an automaton without backtracking) runs at a multiple of the speed at
which the JSON around the text was decoded, so the careful rules see only what it flags.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Sequence
from itertools import accumulate, starmap
from typing import Any

from msgspec import Struct

_SEPARATOR = b"\n\0\n"


class Hit(Struct, frozen=True, order=True, gc=False):
    """A place where a pattern occurs, in characters from the start of the text."""

    start: int
    end: int
    pattern: int
    """Its index in the prefilter's patterns."""


class Prefilter:
    """Finds every place of a text where one of several patterns occurs.

    Safe to share between threads: each has its own scratch space.
    """

    def __init__(
        self, patterns: Sequence[str], *, untracked: Collection[int] = (), literal: bool = False
    ) -> None:
        """Compile the patterns.

        Args:
            patterns: expressions in Hyperscan's dialect, matched against UTF-8.
            untracked: those too large for the engine to track where a match starts; the hits of
                these start at 0.
            literal: the patterns are plain strings, not expressions.
        """
        import hyperscan

        self._engine = hyperscan
        self._database: Any = hyperscan.Database()
        tracked = hyperscan.HS_FLAG_SOM_LEFTMOST
        encoded = [pattern.encode("utf-8", "surrogatepass") for pattern in patterns]
        self._database.compile(
            expressions=encoded,
            ids=list(range(len(encoded))),
            elements=len(encoded),
            flags=[0 if i in untracked else tracked for i in range(len(encoded))],
            literal=literal,
        )
        self._local = threading.local()

    def scan(self, data: bytes) -> list[tuple[int, int, int]]:
        """Return (start byte, end byte, pattern) of each occurrence, in order of the end."""
        found: list[tuple[int, int, int]] = []
        add = found.append

        def on_match(pattern: int, start: int, end: int, flags: int, context: object) -> None:
            add((start, end, pattern))

        if data:
            self._database.scan(data, match_event_handler=on_match, scratch=self._scratch())
        return found

    def hits(self, text: str) -> list[Hit]:
        """Return where the patterns occur in ``text``, in order of their start."""
        data = text.encode("utf-8", "surrogatepass")
        return in_characters(text, data, self.scan(data))

    def hits_in_each(self, texts: Sequence[str]) -> dict[int, list[Hit]]:
        """Return the hits of many texts, by number, scanned as one; texts without are left out.

        A pattern's match that runs over the edge of a text is moved to that edge.
        """
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = list(accumulate((len(data) + len(_SEPARATOR) for data in encoded), initial=0))
        found: dict[int, list[tuple[int, int, int]]] = {}
        for start, end, pattern in self.scan(_SEPARATOR.join(encoded)):
            number = bisect_left(starts, end) - 1
            first, size = starts[number], len(encoded[number])
            place = (max(0, start - first), min(size, end - first), pattern)
            found.setdefault(number, []).append(place)
        return {
            number: in_characters(texts[number], encoded[number], places)
            for number, places in found.items()
        }

    def _scratch(self) -> Any:
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._engine.Scratch(self._database)
        return scratch


def in_characters(text: str, data: bytes, found: Sequence[tuple[int, int, int]]) -> list[Hit]:
    """Turn places in the bytes of a text to hits in its characters, in order of their start."""
    if len(data) == len(text):
        return sorted(starmap(Hit, found))
    known: dict[int, int] = {}
    last = count = 0
    for place in sorted({place for start, end, _ in found for place in (start, end)}):
        edge = place
        while edge < len(data) and data[edge] & 0xC0 == 0x80:
            edge += 1
        count += len(data[last:edge].decode("utf-8", "surrogatepass"))
        last = edge
        known[place] = count
    return sorted(Hit(known[start], known[end], pattern) for start, end, pattern in found)

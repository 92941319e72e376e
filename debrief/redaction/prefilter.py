"""Where to look: one pass of a multi-pattern engine over the bytes of a text.

The engine (Hyperscan, an automaton without backtracking) runs at a multiple of the speed at
which the JSON around the text was decoded, so the careful rules see only what it flags.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from typing import Any

from msgspec import Struct


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
        found = self.scan(data)
        if not found:
            return []
        if len(data) != len(text):
            found = _in_characters(data, found)
        return sorted(Hit(start, end, pattern) for start, end, pattern in found)

    def _scratch(self) -> Any:
        scratch = getattr(self._local, "scratch", None)
        if scratch is None:
            scratch = self._local.scratch = self._engine.Scratch(self._database)
        return scratch


def _in_characters(data: bytes, found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    places = sorted({place for start, end, _ in found for place in (start, end)})
    known: dict[int, int] = {}
    last = count = 0
    for place in places:
        while place < len(data) and data[place] & 0xC0 == 0x80:
            place += 1
        count += len(data[last:place].decode("utf-8", "surrogatepass"))
        last = place
        known[place] = count
    return [(_at(known, data, start), _at(known, data, end), p) for start, end, p in found]


def _at(known: dict[int, int], data: bytes, place: int) -> int:
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return known[place]

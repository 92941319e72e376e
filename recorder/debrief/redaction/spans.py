"""Spans of a text: where secrets are, and where to look for them.

Where to look says one pass of a multi-pattern engine (Hyperscan, an automaton without
backtracking) at a multiple of the speed at which the JSON around the text was decoded, so the
careful rules see only what it flags.
"""

from __future__ import annotations

import sys
import threading
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from itertools import accumulate, starmap
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.errors import ConfigurationError
from debrief.files import make_folder, write_durably
from debrief.home import home_folder
from debrief.keys import digest_of

WITHHELD = "withheld"
"""The kind of a stretch that could not be searched in the time that there was."""


class SecretSpan(Struct, frozen=True, order=True, gc=False):
    """A stretch of a text, in characters, that holds one secret or a line of one."""

    start: int
    end: int
    kind: str
    sure: bool = True
    """False: it may be harmless; a person should look before the text trains a model."""
    value: str = ""
    """The secret with its encoding taken off, where the text spells it in another way."""


def union(spans: Iterable[SecretSpan]) -> list[SecretSpan]:
    """Merge spans that overlap, in order of position.

    Picking one of two would leave half a password. The merged span has the kind of a sure one
    that starts first, and is sure when any part of it is; with what is withheld, all is withheld.
    """
    merged: list[SecretSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, -s.end, not s.sure)):
        last = merged[-1] if merged else None
        if last is None or span.start >= last.end:
            if span.end > span.start:
                merged.append(span)
        elif span.end > last.end or (span.sure and not last.sure) or span.kind == WITHHELD:
            kind = last.kind if last.sure or not span.sure else span.kind
            withheld = WITHHELD in (last.kind, span.kind)
            merged[-1] = SecretSpan(
                last.start,
                max(last.end, span.end),
                WITHHELD if withheld else kind,
                (last.sure or span.sure) and not withheld,
                last.value if last.end >= span.end else "",
            )
    return merged


def without(spans: Iterable[SecretSpan], holes: list[tuple[int, int]]) -> list[SecretSpan]:
    """Cut the ``holes`` (in order, not overlapping) out of the spans."""
    kept: list[SecretSpan] = []
    for span in spans:
        inside = [hole for hole in holes if hole[0] < span.end and hole[1] > span.start]
        if not inside:
            kept.append(span)
            continue
        starts = [span.start, *(end for _, end in inside)]
        ends = [*(start for start, _ in inside), span.end]
        kept += (
            SecretSpan(start, end, span.kind, span.sure)
            for start, end in zip(starts, ends, strict=True)
            if start < end
        )
    return kept


_SEPARATOR = b"\n\0\n"
_ANY_NUMBER = sys.maxsize
_MOST_AT_ONCE = 1_000_000
"""More hits than any search reads; of one text, a twenty-fifth and one a character are."""


class Hit(Struct, frozen=True, order=True, gc=False):
    """A place where a pattern occurs, in characters from the start of the text."""

    start: int
    end: int
    pattern: int
    """Its index in the prefilter's patterns."""


def once(make: Callable[[], Prefilter]) -> Callable[[], Prefilter]:
    """Have a prefilter made once a process, however many threads ask for it first."""
    made, lock = cache(make), threading.Lock()

    def get() -> Prefilter:
        with lock:
            return made()

    return get


def _kept_file(patterns: Sequence[bytes], flags: Sequence[int], literal: bool) -> Path:
    """Return where compiled patterns are kept, by all that they were compiled from and with."""
    name = digest_of(version("hyperscan"), literal, flags, patterns)
    return home_folder() / "patterns" / f"{name}.db"


def _loaded(file: Path) -> Any:
    """Return a compiled database; None where there is none that is whole and for this processor."""
    import hyperscan

    try:
        database = hyperscan.loadb(file.read_bytes(), hyperscan.HS_MODE_BLOCK)
        hyperscan.Scratch(database)
    except (OSError, hyperscan.HyperscanError):
        return None
    return database


def _keep(database: Any, file: Path) -> None:
    import hyperscan

    with suppress(OSError, ConfigurationError):  # a home that cannot be written to keeps nothing
        make_folder(file.parent)
        write_durably(file, hyperscan.dumpb(database))


class Prefilter:
    """Finds every place of a text where one of several patterns occurs.

    Safe to share between threads: each has its own scratch space.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        untracked: Collection[int] = (),
        literal: bool = False,
        flags: int = 0,
        is_kept: bool = False,
    ) -> None:
        """Compile the patterns.

        Args:
            patterns: expressions in Hyperscan's dialect, matched against UTF-8.
            untracked: those too large for the engine to track where a match starts; the hits of
                these start at 0.
            literal: the patterns are plain strings, not expressions.
            flags: of the engine, for all patterns.
            is_kept: the compiled patterns are kept on disk, where later processes find them:
                compiling some hundred takes half a second, loading them less than a thousandth.
        """
        import hyperscan

        self._engine = hyperscan
        self._local = threading.local()
        tracked = hyperscan.HS_FLAG_SOM_LEFTMOST
        encoded = [pattern.encode("utf-8", "surrogatepass") for pattern in patterns]
        each = [flags if i in untracked else flags | tracked for i in range(len(encoded))]
        file = _kept_file(encoded, each, literal) if is_kept else None
        self._database: Any = _loaded(file) if file else None
        if self._database is None:
            self._database = hyperscan.Database()
            self._database.compile(
                expressions=encoded,
                ids=list(range(len(encoded))),
                elements=len(encoded),
                flags=each,
                literal=literal,
            )
            if file:
                _keep(self._database, file)

    def scan(self, data: bytes, most: int = _ANY_NUMBER) -> list[tuple[int, int, int]]:
        """Return (start byte, end byte, pattern) of each occurrence, in order of the end.

        Args:
            data: UTF-8.
            most: stop after so many.
        """
        found: list[tuple[int, int, int]] = []
        add = found.append

        def on_match(pattern: int, start: int, end: int, flags: int, context: object) -> bool:
            add((start, end, pattern))
            return len(found) >= most

        try:
            if data:
                self._database.scan(data, match_event_handler=on_match, scratch=self._scratch())
        except self._engine.ScanTerminated:  # there are more
            pass
        return found

    def hits(self, text: str, most: int = _ANY_NUMBER) -> list[Hit]:
        """Return where the patterns occur in ``text``, in order of their start."""
        data = text.encode("utf-8", "surrogatepass")
        return in_characters(text, data, self.scan(data, most))

    def hits_in_each(self, texts: Iterable[str]) -> dict[str, Sequence[Hit]]:
        """Return the hits of each of many texts, scanned as one; texts without are left out.

        A pattern's match that runs over the edge of a text is moved to that edge.
        """
        texts = list(dict.fromkeys(texts))
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        starts = list(accumulate((len(data) + len(_SEPARATOR) for data in encoded), initial=0))
        found: dict[int, list[tuple[int, int, int]]] = {}
        matches = self.scan(_SEPARATOR.join(encoded), _MOST_AT_ONCE)
        if len(matches) >= _MOST_AT_ONCE:
            each = ((text, self.hits(text, _MOST_AT_ONCE // 25 + len(text))) for text in texts)
            return {text: hits for text, hits in each if hits}
        for start, end, pattern in matches:
            number = bisect_left(starts, end) - 1
            first, size = starts[number], len(encoded[number])
            place = (max(0, start - first), min(size, end - first), pattern)
            found.setdefault(number, []).append(place)
        return {
            texts[number]: in_characters(texts[number], encoded[number], places)
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

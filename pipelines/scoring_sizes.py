"""How many chunks sessions are likely to be scored in, told without reading them.

A session that was scored before has the chunks that it had. Of another one the lake knows the size
of its transcripts, and of the scored ones how many tokens such a size came to.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil

from msgspec import Struct

from debrief.lake import Lake
from debrief.scoring.chunking import TARGET
from debrief.sessions.heads import SessionHead

_LEAST_NEW = 0.75
"""Of a chunk's tokens, those that the one before does not share: at least so many."""
_OUTLIERS = 0.1
"""Of the scored sessions on either side that are left out of the range."""


class Chunks(Struct, frozen=True):
    """A number of chunks: likely, and between which bounds."""

    likely: int = 0
    fewest: int = 0
    most: int = 0

    def __add__(self, other: Chunks) -> Chunks:
        return Chunks(
            self.likely + other.likely, self.fewest + other.fewest, self.most + other.most
        )


class _Verdicts(Struct, frozen=True):
    """Nothing of a chunk but that it is one."""


class _Known(Struct, frozen=True, kw_only=True):
    session_id: str
    session_digest: str
    status: str
    tokens: int = 0
    chunks: tuple[_Verdicts, ...] = ()


class Sizes:
    """What the scored sessions of a lake tell of the others.

    Args:
        lake: where they are.
    """

    def __init__(self, lake: Lake) -> None:
        self._known: dict[tuple[str, str], int] = {}
        measured: list[tuple[int, int]] = []
        for week in lake.partitions("session_scores"):
            scored = {
                (row.session_id, row.session_digest): row
                for row in lake.read("session_scores", week, _Known)
                if row.status == "ok" and row.chunks
            }
            self._known |= {key: len(row.chunks) for key, row in scored.items()}
            for head in lake.read("raw_sessions", week, SessionHead):
                row = scored.get((head.id, head.digest))
                if row is not None and (size := _bytes(head)):
                    measured.append((row.tokens, size))
        self._tokens_a_byte = sorted(tokens / size for tokens, size in measured)
        whole = sum(size for _, size in measured)
        self._usual = sum(tokens for tokens, _ in measured) / whole if whole else 0.0
        """Of the large ones rather than of the many small ones, which are one chunk in any case."""

    def of(self, head: SessionHead) -> Chunks:
        """Return in how many chunks a session is likely to be scored."""
        known = self._known.get((head.id, head.digest))
        if known is not None:
            return Chunks(known, known, known)
        if not self._tokens_a_byte:
            return Chunks(1, 1, 1)
        size = _bytes(head)
        likely = _chunks(size * self._usual, (1 + _LEAST_NEW) / 2)
        fewest = _chunks(size * self._quantile(_OUTLIERS), 1.0)
        most = _chunks(size * self._quantile(1 - _OUTLIERS), _LEAST_NEW)
        return Chunks(likely, min(fewest, likely), max(most, likely))

    def _quantile(self, share: float) -> float:
        return self._tokens_a_byte[round(share * (len(self._tokens_a_byte) - 1))]


def total(found: Iterable[Chunks]) -> Chunks:
    """Add up."""
    return sum(found, Chunks())


def _bytes(head: SessionHead) -> int:
    return sum(each.size for each in head.transcripts)


def _chunks(tokens: float, new: float) -> int:
    """Return how many chunks so many tokens make, when so much of each is new."""
    return 1 if tokens <= TARGET else max(2, 1 + ceil((tokens - TARGET) / (TARGET * new)))

"""Chunk invariance: how much a session's scores depend on where it was cut."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from debrief.markdown import table
from debrief.scoring.dimensions import BY_NAME
from debrief.scoring.model import ChunkScorer
from debrief.scoring.scorer import ChunkParameters, score_session
from debrief.sessions.model import Session

FACTORS = (0.8, 1.0, 1.2)


class Movement(Struct, frozen=True, kw_only=True):
    """How far apart a score's values lie when one session is cut at several targets."""

    session_id: str
    chunks: tuple[int, ...]
    """At each target."""
    name: str
    """A dimension, or ``overall_quality``."""
    values: tuple[float, ...]

    @property
    def spread(self) -> float:
        """Return the largest value minus the smallest."""
        return max(self.values) - min(self.values)


def chunk_invariance(
    sessions: Iterable[Session],
    scorer: ChunkScorer,
    parameters: ChunkParameters | None = None,
    factors: Sequence[float] = FACTORS,
) -> Iterator[Movement]:
    """Yield the movements of each session that has several chunks at one of the targets.

    Sessions that the scorer fails on are left out.

    Args:
        sessions: to be scored once a factor, so a model is asked as often.
        scorer: the same for all.
        parameters: whose target the factors multiply.
        factors: of the target.
    """
    base = parameters or ChunkParameters()
    for session in sessions:
        rows = [
            score_session(
                session,
                scorer,
                ChunkParameters(round(base.target * f), base.overlap, base.min_chunk_ratio),
            )
            for f in factors
        ]
        chunks = tuple(len(row.chunks) for row in rows)
        if max(chunks) < 2 or any(row.status == "failed" for row in rows):
            continue
        columns = {
            name: tuple(row.verdicts[place].value for row in rows)
            for place, name in enumerate(BY_NAME)
        }
        columns["overall_quality"] = tuple(row.overall_quality or 0.0 for row in rows)
        for name, values in columns.items():
            yield Movement(session_id=session.id, chunks=chunks, name=name, values=values)


def movements_table(movements: Iterable[Movement]) -> str:
    """Return the movements as a Markdown table: mean and largest spread of every score."""
    spreads: dict[str, list[float]] = {}
    for movement in movements:
        spreads.setdefault(movement.name, []).append(movement.spread)
    rows = [
        (name, str(len(found)), f"{sum(found) / len(found):.3f}", f"{max(found):.3f}")
        for name, found in spreads.items()
    ]
    return table(("score", "sessions", "mean spread", "largest"), rows)

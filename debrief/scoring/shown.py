"""How dimensions and their mean are shown: a number, or a dash and why there is none."""

from __future__ import annotations

from typing import Final

from debrief.scoring.chunking import OVERLAP, TARGET
from debrief.scoring.dimensions import DIMENSIONS
from debrief.scoring.model import DimensionScore, SessionScores

DASH: Final = "–"
NOTHING_SHOWS: Final = "Nothing in the session shows it."


def value_shown(verdict: DimensionScore) -> str:
    """Return a dimension's category with its number, or the number, or a dash."""
    if verdict.value is None:
        return DASH
    number = f"{verdict.value:.2f}"
    return f"{verdict.category} {number}" if verdict.category else number


def reason_shown(verdict: DimensionScore) -> str:
    """Return why a dimension has its value, or none."""
    return verdict.rationale or (NOTHING_SHOWS if verdict.value is None else "")


def known_shown(row: SessionScores) -> str:
    """Return of how few dimensions a mean is: ``of 2 dimensions``; empty where it is of all six."""
    known = sum(verdict.value is not None for verdict in row.dimension_scores)
    if row.overall_quality is None or known == len(DIMENSIONS):
        return ""
    return f"of {known} dimension{'s' if known != 1 else ''}"


def parts_shown(row: SessionScores) -> str:
    """Return how many parts a session was scored in, and how many traces each repeats of the one
    before: where the budget has no room for all, how many and why; empty for a single part.
    """
    later = row.chunks[1:]
    if not later:
        return ""
    shown = (
        f"{len(row.chunks)}, each of {TARGET:,} tokens at most and with the last {OVERLAP} traces "
        "of the one before"
    )
    short = sorted({chunk.overlap for chunk in later if chunk.overlap < OVERLAP})
    if not short:
        return shown
    parts = {few: [str(c.index + 1) for c in later if c.overlap == few] for few in short}
    fewer = "; ".join(
        f"{few or 'none'} in part {', '.join(numbers)}" for few, numbers in parts.items()
    )
    return f"{shown}, or fewer where {OVERLAP} and the trace after them do not fit: {fewer}"

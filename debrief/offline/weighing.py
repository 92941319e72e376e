"""Weighing evidence: from signals to one number from 0 to 1, and the reasons for it.

Reasons add up as log-odds, so that many weak ones and a few strong ones can be distinguished over
the whole scale, and no sum leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from debrief.offline.model import Sighting, Signals

_REASONS = 5
_TURNS = 3


class Weighing:
    """Collects reasons for and against."""

    def __init__(self, prior: float = 0.0) -> None:
        """Start from ``prior`` log-odds: 0 is one half, 0.85 is 0.7."""
        self._sum = prior
        self._reasons: list[tuple[float, str]] = []

    def add(self, weight: float, reason: str) -> None:
        """Add a reason: a weight over 0 speaks for, one under 0 against."""
        if abs(weight) >= 0.01:
            self._sum += weight
            self._reasons.append((weight, reason))

    def add_half(self, other: Weighing) -> None:
        """Take in another weighing at half its weight."""
        self._sum += other._sum / 2
        known = {text for _, text in self._reasons}
        self._reasons += [(w / 2, text) for w, text in other._reasons if text not in known]

    @property
    def score(self) -> float:
        """From 0 to 1, to four places."""
        return round(1.0 / (1.0 + math.exp(-self._sum)), 4)

    def rationale(self, otherwise: str) -> str:
        """Return the weightiest reasons, first what speaks against; ``otherwise`` if none is."""
        weightiest = sorted(self._reasons, key=lambda reason: -abs(reason[0]))[:_REASONS]
        if not weightiest:
            return otherwise
        against = [text for weight, text in weightiest if weight < 0]
        for_it = [text for weight, text in weightiest if weight > 0]
        parts = []
        if against:
            parts.append("Against: " + "; ".join(against) + ".")
        if for_it:
            parts.append("For: " + "; ".join(for_it) + ".")
        return " ".join(parts)


def some(count: float, half: float) -> float:
    """Return 0 for none, one half at ``half``, and towards 1 for ever more."""
    return count / (count + half) if count > 0 else 0.0


def exploration_before_edits(signals: Signals) -> str:
    """Say how much was looked at before and while editing."""
    searches = counted(signals.searches, "search{s}").replace("searchs", "searches")
    return f"looked first: {searches}, {counted(signals.reads, 'read{s}')}"


def turns_of(sightings: Sequence[Sighting]) -> str:
    """Return ``turn 3`` or ``turns 3, 4, 9 and 2 more``."""
    numbers = list(dict.fromkeys(sighting.turn for sighting in sightings))
    shown = ", ".join(map(str, numbers[:_TURNS]))
    more = f" and {len(numbers) - _TURNS} more" if len(numbers) > _TURNS else ""
    return f"turn{'s' if len(numbers) > 1 else ''} {shown}{more}"


def cited(what: str, sightings: Sequence[Sighting]) -> str:
    """Return e.g. ``2 tool errors (turns 3, 5: "no such file")``; ``what`` as of ``counted``."""
    return f"{counted(len(sightings), what)} ({turns_of(sightings)}: “{sightings[0].quote}”)"


def counted(count: int, what: str) -> str:
    """Return number and noun, ``{s}`` in ``what`` being the plural's ending.

    >>> counted(1, "line{s} added"), counted(2, "line{s} added")
    ('1 line added', '2 lines added')
    """
    return f"{count} {what.replace('{s}', '' if count == 1 else 's')}"

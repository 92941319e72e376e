"""Contrast: which sessions are good and bad, and how far a habit tells them apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.keys import digest_of
from debrief.scoring.model import ScoreName, SessionScores
from debrief.scoring.verdict import SHORT_OF_DONE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Z = 1.959964
_SMALL = 16
"""Sessions for which every division into two groups (12,870 at most) is looked at."""


class Sides(Struct, frozen=True):
    """Good sessions and bad ones by their ids; where they are ranked, the best and the worst
    first."""

    best: tuple[str, ...]
    worst: tuple[str, ...]


def score_of(scores: SessionScores, score_name: ScoreName) -> float | None:
    """Return what a score name means for one session; None when it has no such score.

    Excellence is the verdict: 1 for what is done and checked, 0 for what is partly or not done. All
    else is neither good nor bad, and has none.

    The two efficiencies count lines: a session that changed none, a question answered, is
    neither efficient nor wasteful, and has none.
    """
    if scores.status != "ok":
        return None
    if score_name == "excellence":
        verdict = scores.verdict.verdict if scores.verdict is not None else "cannot_tell"
        return 1.0 if verdict == "done_verified" else 0.0 if verdict in SHORT_OF_DONE else None
    value: float | None = getattr(scores, score_name)
    return value or None


def values_of(scores: Iterable[SessionScores], score_name: ScoreName) -> dict[str, float]:
    """Return what a score name means for each session that has such a score, by session id."""
    found = ((row.session_id, score_of(row, score_name)) for row in scores)
    return {id_: value for id_, value in found if value is not None}


def sides_of(
    values: Mapping[str, float], score_name: ScoreName, *, share: float, minimum: int
) -> Sides | None:
    """Return the good and the bad sessions by a score name, at least ``minimum`` on each side.

    By verdict all are, in an order that says nothing of them, so that the first of a side stand for
    all of it; by an efficiency, ``share`` of them at each end. None when there are too few, or when
    the ends are not apart.
    """
    if score_name != "excellence":
        return ends_of(values, share=share, minimum=minimum)
    mixed = sorted(values, key=lambda id_: digest_of("mixed", id_))
    good, bad = (tuple(id_ for id_ in mixed if (values[id_] > 0) == side) for side in (True, False))
    return None if min(len(good), len(bad)) < minimum else Sides(good, bad)


def ends_of(values: Mapping[str, float], *, share: float, minimum: int) -> Sides | None:
    """Return the best and the worst ``share`` of the sessions, at least ``minimum`` on each side.

    None when there are fewer than twice ``minimum``, or when the ends are not apart. Of sessions
    with equal values the id decides, so the answer depends on the values alone.
    """
    ranked = sorted(values, key=lambda id_: (-values[id_], id_))
    count = max(minimum, round(share * len(ranked)))
    if 2 * count > len(ranked):
        return None
    best, worst = ranked[:count], ranked[: -count - 1 : -1]
    if values[best[-1]] <= values[worst[-1]]:
        return None
    return Sides(tuple(best), tuple(worst))


def unmarked(sides: Sides) -> list[str]:
    """Return the sessions of both ends in an order that does not tell which end each is of.

    The order depends on the ids alone, so that the same sessions are always shown alike.
    """
    return sorted((*sides.best, *sides.worst), key=lambda id_: digest_of("unmarked", id_))


def cliffs_delta(best: Sequence[float], worst: Sequence[float]) -> float:
    """Return Cliff's delta: 1 when every best value is above every worst one, −1 the reverse.

    >>> cliffs_delta([3, 3], [1, 3])
    0.5
    """
    return float(_signs(best, worst).mean())


def effect_of(best: Sequence[float], worst: Sequence[float]) -> dict[str, float]:
    """Return Cliff's delta, its 95 % interval and its p-value, by the names of a trial's fields."""
    delta = cliffs_delta(best, worst)
    low, high = _interval(_signs(best, worst), delta)
    return {
        "effect": round(delta, 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "p_value": round(_p_value(best, worst), 6),
        "best_count": len(best),
        "worst_count": len(worst),
    }


def false_discovery(p_values: Iterable[float]) -> list[float]:
    """Return the p-values corrected for their number, after Benjamini and Hochberg.

    ``scipy.stats`` has this as ``false_discovery_control``, but is an import of 78 MB.
    """
    given = list(p_values)
    order = sorted(range(len(given)), key=given.__getitem__)
    corrected, least = [1.0] * len(given), 1.0
    for rank in range(len(given), 0, -1):
        place = order[rank - 1]
        least = corrected[place] = min(least, given[place] * (len(given) / rank))
    return corrected


def sessions_needed(delta: float, p_value: float, power: float = 0.8) -> int:
    """Return how many sessions both sides need together for an effect to show.

    After Noether (1987), for the Mann-Whitney test.

    Args:
        delta: the effect, as Cliff's delta.
        p_value: the highest that counts, two-sided.
        power: how often the effect is to show.
    """
    from scipy.special import ndtri

    return math.ceil(float(ndtri(1 - p_value / 2) + ndtri(power)) ** 2 / (3 * (delta / 2) ** 2))


def _p_value(best: Sequence[float], worst: Sequence[float]) -> float:
    """Return the two-sided Mann-Whitney p-value, exact by permutation where the groups are small.

    Everything is in sums of signs against all values: twice the centred rank sums, in integers.
    """
    import numpy as np

    both = [*best, *worst]
    count = len(both)
    _, ties = np.unique(both, return_counts=True)
    if len(ties) == 1:
        return 1.0
    ranks = _signs(both, both).sum(axis=1)
    observed = ranks[: len(best)].sum()
    if count <= _SMALL:
        divisions = ranks[_divisions(count, len(best))].sum(axis=1)
        return min(
            1.0, 2 * float(min((divisions <= observed).mean(), (divisions >= observed).mean()))
        )
    tied = float((ties**3 - ties).sum()) / (count * (count - 1))
    spread = math.sqrt(len(best) * len(worst) / 12 * (count + 1 - tied))
    return min(1.0, math.erfc((abs(observed) / 2 - 0.5) / spread / math.sqrt(2)))


def _interval(signs: NDArray[np.int64], delta: float) -> tuple[float, float]:
    """Return the 95 % interval of Cliff's delta after Feng and Cliff (2004), for small groups."""
    m, n = signs.shape
    if abs(delta) == 1:
        fewest = min(m, n)
        bound = (fewest - _Z**2) / (fewest + _Z**2)
        return (bound, 1.0) if delta > 0 else (-1.0, -bound)
    if m < 2 or n < 2:
        return -1.0, 1.0
    pairs = float(((signs - delta) ** 2).sum())
    spread = n**2 * float(((signs.mean(axis=1) - delta) ** 2).sum())
    spread += m**2 * float(((signs.mean(axis=0) - delta) ** 2).sum())
    variance = max((spread - pairs) / (m * n * (m - 1) * (n - 1)), (1 - delta**2) / (m * n - 1))
    scaled = _Z**2 * variance
    width = math.sqrt(scaled) * math.sqrt((1 - delta**2) ** 2 + scaled)
    scale = 1 - delta**2 + scaled
    middle = delta - delta**3
    return max(-1.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def _signs(ours: Sequence[float], theirs: Sequence[float]) -> NDArray[np.int64]:
    """Return 1, 0 or −1 for each of ours (rows) being above, at or below each of theirs."""
    import numpy as np

    return np.sign(np.subtract.outer(ours, theirs)).astype(np.int64)


@cache
def _divisions(count: int, first: int) -> NDArray[np.int64]:
    """Return every way to choose the first group, a row each."""
    import numpy as np

    return np.array(list(combinations(range(count), first)))

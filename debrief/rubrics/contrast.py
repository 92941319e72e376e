"""Contrast: which sessions are best and worst, and how far a habit tells them apart."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from debrief.scoring.model import ScoreName, SessionScores

_Z = 1.959964
_SMALL = 12
_PERMUTATIONS = 1_000
"""More than twelve sessions can be divided in (924), so every division is looked at."""


class Sides(Struct, frozen=True):
    """The two ends of a ranking, session ids with the best and with the worst first."""

    best: tuple[str, ...]
    worst: tuple[str, ...]


class Effect(Struct, frozen=True, kw_only=True):
    """How far two groups of numbers lie apart."""

    delta: float
    """Cliff's delta: how much more often a best session is above a worst one than below."""
    low: float
    """Of its 95 % confidence interval."""
    high: float
    p_value: float
    best_count: int
    worst_count: int


def score_of(scores: SessionScores, score_name: ScoreName) -> float | None:
    """Return what a score name means for one session; None when it has no such score.

    The two efficiencies count lines: a session that changed none, a question answered, is
    neither efficient nor wasteful, and has none.
    """
    if scores.status != "ok":
        return None
    if score_name == "excellence":
        return scores.overall_quality
    value = (
        scores.token_efficiency if score_name == "token_efficiency" else scores.user_turn_efficiency
    )
    return value if value else None


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


def halves_of(values: Mapping[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Split sessions into two halves that are alike in their values: every other one by rank."""
    ranked = sorted(values, key=lambda id_: (-values[id_], id_))
    return (
        {id_: values[id_] for place, id_ in enumerate(ranked) if place % 4 in (0, 3)},
        {id_: values[id_] for place, id_ in enumerate(ranked) if place % 4 in (1, 2)},
    )


def cliffs_delta(best: Sequence[float], worst: Sequence[float]) -> float:
    """Return Cliff's delta: 1 when every best value is above every worst one, −1 the reverse.

    >>> cliffs_delta([3, 3], [1, 3])
    0.5
    """
    if not best or not worst:
        raise ValueError("an effect needs values on both sides")
    return sum(_sign(a, b) for a in best for b in worst) / (len(best) * len(worst))


def effect_of(best: Sequence[float], worst: Sequence[float]) -> Effect:
    """Return the effect with its confidence interval and p-value."""
    delta = cliffs_delta(best, worst)
    low, high = _interval(best, worst, delta)
    return Effect(
        delta=delta,
        low=low,
        high=high,
        p_value=_p_value(best, worst),
        best_count=len(best),
        worst_count=len(worst),
    )


def false_discovery(p_values: Iterable[float]) -> list[float]:
    """Return the p-values corrected for their number, after Benjamini and Hochberg."""
    from scipy.stats import false_discovery_control

    given = list(p_values)
    return [float(value) for value in false_discovery_control(given)] if given else []


def _p_value(best: Sequence[float], worst: Sequence[float]) -> float:
    """Return the Mann-Whitney p-value, exact by permutation where the groups are small."""
    if len({*best, *worst}) == 1:
        return 1.0
    from scipy.stats import PermutationMethod, mannwhitneyu

    small = len(best) + len(worst) <= _SMALL
    method = PermutationMethod(n_resamples=_PERMUTATIONS) if small else "asymptotic"
    return float(mannwhitneyu(best, worst, alternative="two-sided", method=method).pvalue)


def _interval(best: Sequence[float], worst: Sequence[float], delta: float) -> tuple[float, float]:
    """Return the 95 % interval of Cliff's delta after Feng and Cliff (2004), for small groups."""
    m, n = len(best), len(worst)
    if abs(delta) == 1:
        fewest = min(m, n)
        bound = (fewest - _Z**2) / (fewest + _Z**2)
        return (bound, 1.0) if delta > 0 else (-1.0, -bound)
    if m < 2 or n < 2:
        return -1.0, 1.0
    by_best = [sum(_sign(a, b) for b in worst) / n for a in best]
    by_worst = [sum(_sign(a, b) for a in best) / m for b in worst]
    pairs = sum((_sign(a, b) - delta) ** 2 for a in best for b in worst)
    spread = n**2 * sum((d - delta) ** 2 for d in by_best)
    spread += m**2 * sum((d - delta) ** 2 for d in by_worst)
    variance = max((spread - pairs) / (m * n * (m - 1) * (n - 1)), (1 - delta**2) / (m * n - 1))
    scaled = _Z**2 * variance
    width = math.sqrt(scaled) * math.sqrt((1 - delta**2) ** 2 + scaled)
    scale = 1 - delta**2 + scaled
    middle = delta - delta**3
    return max(-1.0, (middle - width) / scale), min(1.0, (middle + width) / scale)


def _sign(a: float, b: float) -> int:
    return (a > b) - (a < b)

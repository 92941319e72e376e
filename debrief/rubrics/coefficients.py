"""Coefficients of agreement between two raters, and a rate corrected for a judge's mistakes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

_Z = 1.959963984540054


class Coefficient(Struct, frozen=True):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


class CorrectedRate(Struct, frozen=True, kw_only=True):
    """How many sessions are good, as people would say of all of them."""

    sensitivity: float
    """Of the sessions that people call good, the share that the judge does."""
    specificity: float
    """Of the sessions that people call not good, the share that the judge does not either."""
    rate: Coefficient | None
    """None when the judge tells good from bad no better than chance, or one kind has no label."""


def weighted_kappa(ours: Sequence[int], theirs: Sequence[int], levels: int) -> Coefficient | None:
    """Return Cohen's kappa with quadratic weights, which for two levels is the plain one.

    Args:
        ours: levels from 0, one rater's.
        theirs: the other's, of the same things in the same order.
        levels: how many the scale has.

    Returns:
        None when fewer than two things were rated, or chance alone would always agree.
    """
    if len(ours) < 2:
        return None
    import warnings

    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    table = np.zeros((levels, levels))
    np.add.at(table, (list(ours), list(theirs)), 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = cohens_kappa(table, wt="quadratic")
    kappa = float(found.kappa)
    if not math.isfinite(kappa):
        return None
    return _bounded(kappa, float(found.kappa_low), float(found.kappa_upp))


def gwet_ac1(ours: Sequence[int], theirs: Sequence[int], levels: int) -> Coefficient | None:
    """Return Gwet's AC1, which stays meaningful where nearly everything gets the same level.

    After Gwet (2008), with his linearised variance; no maintained library has it for the numpy
    in use.

    Args:
        ours: levels from 0, one rater's.
        theirs: the other's.
        levels: how many the scale has, used or not.

    Returns:
        None when fewer than two things were rated.
    """
    count = len(ours)
    if count < 2:
        return None
    from scipy.special import stdtrit

    shares = [(ours.count(level) + theirs.count(level)) / (2 * count) for level in range(levels)]
    chance = sum(share * (1 - share) for share in shares) / (levels - 1)
    agreed = sum(a == b for a, b in zip(ours, theirs, strict=True)) / count
    value = (agreed - chance) / (1 - chance)
    spread = 0.0
    for a, b in zip(ours, theirs, strict=True):
        own_chance = ((1 - shares[a]) + (1 - shares[b])) / 2 / (levels - 1)
        own = ((a == b) - chance) / (1 - chance)
        own -= 2 * (1 - value) * (own_chance - chance) / (1 - chance)
        spread += (own - value) ** 2
    width = float(stdtrit(count - 1, 0.975)) * math.sqrt(spread / (count * (count - 1)))
    return _bounded(value, value - width, value + width)


def corrected_rate(
    people: Sequence[bool], judge: Sequence[bool], rate: float, count: int
) -> CorrectedRate:
    """Correct a judge's rate of good sessions for the mistakes that labels show it makes.

    The estimate is Rogan and Gladen's (1978), the interval Lang and Reiczigel's (2014), which
    counts that sensitivity and specificity are themselves only estimated.

    Args:
        people: of the labelled sessions, whether people call them good.
        judge: of the same, whether the judge does.
        rate: the share of all judged sessions that the judge calls good.
        count: how many those are.
    """
    good = [said for truth, said in zip(people, judge, strict=True) if truth]
    bad = [said for truth, said in zip(people, judge, strict=True) if not truth]
    sensitivity = sum(good) / len(good) if good else math.nan
    specificity = 1 - sum(bad) / len(bad) if bad else math.nan
    known = bool(good and bad) and count > 0
    estimate = None
    if known and sensitivity + specificity > 1:
        middle = (rate + specificity - 1) / (sensitivity + specificity - 1)
        low, high = _interval(sensitivity, len(good), specificity, len(bad), rate, count)
        middle = min(1.0, max(0.0, middle))
        estimate = Coefficient(middle, min(low, middle), max(high, middle))
    return CorrectedRate(sensitivity=sensitivity, specificity=specificity, rate=estimate)


def _interval(
    sensitivity: float, good: int, specificity: float, bad: int, rate: float, count: int
) -> tuple[float, float]:
    many = count + _Z**2
    rate = (count * rate + _Z**2 / 2) / many
    sensitivity = (good * sensitivity + 1) / (good + 2)
    specificity = (bad * specificity + 1) / (bad + 2)
    skill = sensitivity + specificity - 1
    if skill <= 0:
        return 0.0, 1.0
    middle = (rate + specificity - 1) / skill
    by_good = sensitivity * (1 - sensitivity) / (good + 2)
    by_bad = specificity * (1 - specificity) / (bad + 2)
    shift = 2 * _Z**2 * (middle * by_good - (1 - middle) * by_bad)
    variance = rate * (1 - rate) / many + middle**2 * by_good + (1 - middle) ** 2 * by_bad
    width = _Z * math.sqrt(variance) / skill
    return (
        min(1.0, max(0.0, middle + shift - width)),
        min(1.0, max(0.0, middle + shift + width)),
    )


def _bounded(value: float, low: float, high: float) -> Coefficient:
    if not math.isfinite(low) or not math.isfinite(high):
        low, high = -1.0, 1.0
    return Coefficient(value, max(-1.0, low), min(1.0, high))

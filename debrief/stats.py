"""Statistics: intervals, agreement of two raters, ranks, differences, and chance ruled out.

They are those of scipy, which the functions import when they are called: no command should wait
for it to print its help. What every run needs is written out on scipy.special, which is there in a
third of a second; so is, after the paper that is named, what the library lacks. Tests hold both to
scipy and statsmodels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Z = NormalDist().inv_cdf(0.975)
"""Standard deviations to either side that hold 95 % of a normal distribution."""
_SMALL = 16
"""Values for which every division into two groups (12,870 at most) is looked at."""


class Estimate(Struct, frozen=True):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def columns(self, name: str, value: str = "") -> dict[str, Any]:
        """Return a row's columns: the value, by its own name if it has one, and the interval."""
        columns = {value or name: self.value, f"{name}_low": self.low, f"{name}_high": self.high}
        return {column: round(number, 6) for column, number in columns.items()}


class MeanEstimate(Struct, frozen=True, kw_only=True):
    """A mean with its 95 % interval (Student's t)."""

    count: int
    """Sessions for which the measure is known."""
    mean: float | None = None
    """None when it is known for none."""
    low: float | None = None
    """None below two sessions: one says nothing about the spread."""
    high: float | None = None


NO_ESTIMATE = MeanEstimate(count=0)


class StratifiedDifference(Struct, frozen=True, kw_only=True):
    """How two groups differ where they can be compared: within strata that hold both."""

    value: float | None = None
    """Mean of the second group minus that of the first; None where no stratum holds both."""
    low: float | None = None
    """95 % interval; None where nothing shows how far values of one stratum lie apart."""
    high: float | None = None
    strata: int = 0
    """That hold both groups."""
    first: int = 0
    """Values of the first group in these strata."""
    second: int = 0


def mean_of(
    values: Sequence[float], upper: float | None = None, lower: float = 0.0
) -> MeanEstimate:
    """Return the mean of values and its Student interval, cut to the range that values can have.

    Args:
        values: independent ones.
        upper: the most that a value can be; None where there is no most.
        lower: the least.
    """
    count = len(values)
    if not count:
        return NO_ESTIMATE
    mean = sum(values) / count
    if count == 1:
        return MeanEstimate(count=1, mean=mean)
    import numpy as np

    reach = _student(count - 1) * float(np.std(values, ddof=1)) / math.sqrt(count)
    high = mean + reach if upper is None else min(upper, mean + reach)
    return MeanEstimate(count=count, mean=mean, low=max(lower, mean - reach), high=max(mean, high))


def share_of(count: int, of: int) -> Estimate | None:
    """Return a share with its interval after Wilson (1927); None of nothing.

    >>> share_of(3, 0) is None
    True

    Raises:
        ValueError: there are more than there are in all, or fewer than none.
    """
    if not of:
        return None
    if not 0 <= count <= of:
        raise ValueError(f"{count} of {of} are no share")
    many = of + Z**2
    middle = (count + Z**2 / 2) / many
    width = Z / many * math.sqrt(count * (of - count) / of + Z**2 / 4)
    low = middle - width if count else 0.0
    return Estimate(count / of, low, middle + width if count < of else 1.0)


def difference_of_shares(ours: tuple[int, int], theirs: tuple[int, int]) -> Estimate:
    """Return our share minus theirs, with Newcombe's interval (1998, method 10) out of Wilson's.

    It holds where groups are small and where a share is 0 or 1.

    >>> difference_of_shares((0, 4), (3, 4)).value
    -0.75

    Args:
        ours: how many of how many; of one at least.
        theirs: likewise.
    """
    first, second = share_of(*ours), share_of(*theirs)
    if first is None or second is None:
        raise ValueError("a share of nothing has no difference from another")
    value = first.value - second.value
    low = math.hypot(first.value - first.low, second.high - second.value)
    high = math.hypot(first.high - first.value, second.value - second.low)
    return Estimate(value, value - low, value + high)


def stratified_difference(
    values: Sequence[float], groups: Sequence[bool], strata: Sequence[str]
) -> StratifiedDifference:
    """Return the mean difference between two groups, like compared with like.

    Each stratum that holds both groups counts by how much it says (twice the harmonic mean of its
    two numbers). This is the regression on the group and on every stratum: for pairs it is the
    paired t test, for one stratum the one of two samples. After Frisch and Waugh (1933), what
    the strata explain is taken out of both first, so that no column a stratum is needed.

    Args:
        values: one a session.
        groups: of the same sessions, whether each is of the second group.
        strata: what may be compared with what, such as the task.
    """
    both: dict[str, set[bool]] = {}
    for stratum, group in zip(strata, groups, strict=True):
        both.setdefault(stratum, set()).add(group)
    shared = sorted(stratum for stratum, found in both.items() if len(found) == 2)
    rows = [row for row in zip(values, groups, strata, strict=True) if len(both[row[2]]) == 2]
    if not rows:
        return StratifiedDifference()
    import numpy as np

    place = {stratum: number for number, stratum in enumerate(shared)}
    places = np.array([place[name] for _, _, name in rows])
    second = np.array([group for _, group, _ in rows], dtype=float)

    def within(column: Floats) -> Floats:
        means: Floats = np.bincount(places, column) / np.bincount(places)
        apart: Floats = column - means[places]
        return apart

    x, y = within(second), within(np.array([value for value, _, _ in rows], dtype=float))
    value = float(x @ y / (x @ x))
    found = StratifiedDifference(
        value=value,
        strata=len(shared),
        first=len(rows) - int(second.sum()),
        second=int(second.sum()),
    )
    freedom = len(rows) - len(shared) - 1
    if freedom < 1:
        return found
    rest = y - value * x
    reach = _student(freedom) * math.sqrt(float(rest @ rest) / freedom / float(x @ x))
    return replace(found, low=value - reach, high=value + reach)


def lower_bound(count: int, of: int) -> float:
    """Return the one-sided lower 95 % bound of a share, after Clopper and Pearson (1934).

    It is exact: whatever the true share is, the bound lies above it in at most one case of
    twenty, however few there are. Of nothing it is 0.

    >>> round(lower_bound(14, 14), 3)
    0.807
    """
    if not count:
        return 0.0
    from scipy.special import betaincinv

    return float(betaincinv(count, of - count + 1, 0.05))


def kappa(ours: Sequence[bool], theirs: Sequence[bool]) -> float | None:
    """Return Cohen's kappa of two raters who say yes or no, from 1, always the same, to -1.

    Args:
        ours: one rater's.
        theirs: the other's, of the same things in the same order.

    Returns:
        None where chance alone would always agree, or nothing was rated.
    """
    if not ours:
        return None
    agreed = fmean(one == other for one, other in zip(ours, theirs, strict=True))
    yes, other_yes = fmean(ours), fmean(theirs)
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    return None if chance == 1 else (agreed - chance) / (1 - chance)


def corrected_rate(
    said: tuple[int, int], good: tuple[int, int], bad: tuple[int, int]
) -> Estimate | None:
    """Correct a rater's share of good things for the mistakes that labels show it makes.

    The estimate is Rogan and Gladen's (1978), the interval Lang and Reiczigel's (2014), which
    counts that hit rates are themselves only estimated.

    Args:
        said: how many of how many the rater calls good, of one at least.
        good: of good labelled things, how many it calls good.
        bad: of bad labelled things, how many it calls bad.

    Returns:
        None when the rater tells good from bad no better than chance, or one kind has no label.
    """
    if not (good[1] and bad[1]):
        return None
    rate, sensitivity, specificity = (hits / of for hits, of in (said, good, bad))
    if sensitivity + specificity <= 1:
        return None
    middle = _fraction((rate + specificity - 1) / (sensitivity + specificity - 1))
    low, high = _lang_reiczigel(sensitivity, good[1], specificity, bad[1], rate, said[1])
    return Estimate(middle, min(low, middle), max(high, middle))


def _lang_reiczigel(
    sensitivity: float, good: int, specificity: float, bad: int, rate: float, count: int
) -> tuple[float, float]:
    many = count + Z**2
    rate = (count * rate + Z**2 / 2) / many
    sensitivity = (good * sensitivity + 1) / (good + 2)
    specificity = (bad * specificity + 1) / (bad + 2)
    skill = sensitivity + specificity - 1
    if skill <= 0:
        return 0.0, 1.0
    middle = (rate + specificity - 1) / skill
    by_good = sensitivity * (1 - sensitivity) / (good + 2)
    by_bad = specificity * (1 - specificity) / (bad + 2)
    shift = 2 * Z**2 * (middle * by_good - (1 - middle) * by_bad)
    variance = rate * (1 - rate) / many + middle**2 * by_good + (1 - middle) ** 2 * by_bad
    width = Z * math.sqrt(variance) / skill
    return _fraction(middle + shift - width), _fraction(middle + shift + width)


def _student(freedom: int) -> float:
    """Return what 97.5 % of Student's distribution lies below."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))


def _fraction(value: float) -> float:
    return min(1.0, max(0.0, value))


def ranks(values: Sequence[float] | Floats) -> Floats:
    """Return the ranks of values from 1, those of equal ones averaged."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: Floats = np.cumsum(counts) - (counts - 1) / 2
    return middles[places]


def cliffs_delta(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return Cliff's delta: 1 when every one of ours is above every one of theirs, −1 the reverse.

    The interval is Feng and Cliff's (2004), for small groups.

    >>> cliffs_delta([3, 3], [1, 3]).value
    0.5
    """
    import numpy as np

    signs = np.sign(np.subtract.outer(ours, theirs)).astype(np.int64)
    delta = float(signs.mean())
    m, n = signs.shape
    if abs(delta) == 1:
        fewest = min(m, n)
        bound = (fewest - Z**2) / (fewest + Z**2)
        return Estimate(delta, bound, 1.0) if delta > 0 else Estimate(delta, -1.0, -bound)
    if m < 2 or n < 2:
        return Estimate(delta, -1.0, 1.0)
    pairs = float(((signs - delta) ** 2).sum())
    spread = n**2 * float(((signs.mean(axis=1) - delta) ** 2).sum())
    spread += m**2 * float(((signs.mean(axis=0) - delta) ** 2).sum())
    variance = max((spread - pairs) / (m * n * (m - 1) * (n - 1)), (1 - delta**2) / (m * n - 1))
    scaled = Z**2 * variance
    width = math.sqrt(scaled) * math.sqrt((1 - delta**2) ** 2 + scaled)
    scale = 1 - delta**2 + scaled
    middle = delta - delta**3
    return Estimate(delta, max(-1.0, (middle - width) / scale), min(1.0, (middle + width) / scale))


def rank_test(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the two-sided Mann-Whitney p-value, exact by permutation where the groups are small.

    scipy's own permutations give the same, in 100 ms instead of 0.4: a search makes thousands.
    """
    if len({*ours, *theirs}) == 1:
        return 1.0
    if len(ours) + len(theirs) > _SMALL:
        from scipy.stats import mannwhitneyu

        return float(mannwhitneyu(ours, theirs, method="asymptotic").pvalue)
    import numpy as np

    doubled = np.rint(2 * ranks([*ours, *theirs])).astype(np.int64)  # whole, so sums are equal
    observed = doubled[: len(ours)].sum()
    divisions = doubled[_divisions(len(doubled), len(ours))].sum(axis=1)
    least = min((divisions <= observed).mean(), (divisions >= observed).mean())
    return min(1.0, 2 * float(least))


@cache
def _divisions(count: int, first: int) -> NDArray[np.int64]:
    """Return every way to choose the first group, a row each."""
    import numpy as np

    return np.array(list(combinations(range(count), first)))


def false_discovery(p_values: Iterable[float]) -> list[float]:
    """Return the p-values corrected for their number, after Benjamini and Hochberg (1995)."""
    given = list(p_values)
    corrected, least = [1.0] * len(given), 1.0
    falling = sorted(range(len(given)), key=given.__getitem__, reverse=True)
    for before, place in enumerate(falling):
        least = min(least, given[place] * len(given) / (len(given) - before))
        corrected[place] = least
    return corrected


def sessions_needed(delta: float, p_value: float, power: float = 0.8) -> int:
    """Return how many sessions both sides need together for an effect to show.

    After Noether (1987), for the Mann-Whitney test.

    Args:
        delta: the effect, as Cliff's delta.
        p_value: the highest that counts, two-sided.
        power: how often the effect is to show.
    """
    reach = NormalDist().inv_cdf(1 - p_value / 2) + NormalDist().inv_cdf(power)
    return math.ceil(reach**2 / (3 * (delta / 2) ** 2))

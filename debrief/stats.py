"""Statistics: intervals, agreement of two raters, ranks, differences, and chance ruled out.

They are those of scipy and statsmodels, which the functions import when they are called: together
they take seconds and 140 MB, and no command should wait for that to print its help. What every run
needs is written out on scipy.special, which is there in a third of a second; so is, after the paper
that is named, what neither library has. Tests hold both to the libraries.

Functions that take weights (a row a resample, a column a session, the first row all ones) return
one value a row, so that tasks are drawn whole: ten runs of one task are one observation, not ten.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

RESAMPLES = 1_000
Z = NormalDist().inv_cdf(0.975)
"""Standard deviations to either side that hold 95 % of a normal distribution."""
_SMALL = 16
"""Values for which every division into two groups (12,870 at most) is looked at."""
_EPSILON = 1e-6


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


def difference_of(ours: Sequence[float], theirs: Sequence[float]) -> Estimate:
    """Return our mean minus theirs, with Welch's interval, which lets the spreads differ.

    Args:
        ours: two values at least.
        theirs: as many.
    """
    from scipy.stats import ttest_ind

    value = sum(ours) / len(ours) - sum(theirs) / len(theirs)
    if len({*ours}) == len({*theirs}) == 1:
        return Estimate(value, value, value)
    low, high = ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    return Estimate(value, float(low), float(high))


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


def weighted_kappa(ours: Sequence[int], theirs: Sequence[int], levels: int) -> Estimate | None:
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
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    table = np.zeros((levels, levels))
    np.add.at(table, (list(ours), list(theirs)), 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = cohens_kappa(table, wt="quadratic")
    value = float(found.kappa)
    if not math.isfinite(value):
        return None
    return _bounded(value, float(found.kappa_low), float(found.kappa_upp))


def nominal_kappa(ours: Sequence[str], theirs: Sequence[str]) -> Estimate | None:
    """Return Cohen's kappa of two raters who name things, no name being nearer than another.

    Returns:
        None when fewer than two things were rated, or chance alone would always agree.
    """
    if len(ours) < 2:
        return None
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    names, places = np.unique([*ours, *theirs], return_inverse=True)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (places[: len(ours)], places[len(ours) :]), 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = cohens_kappa(table)
    value = float(found.kappa)
    if not math.isfinite(value):
        return None
    return _bounded(value, float(found.kappa_low), float(found.kappa_upp))


def kappa(said: Bools, success: Bools, weights: Floats) -> Floats:
    """Return Cohen's kappa of "good" against success, by resample; not a number where chance alone
    would always agree."""
    import numpy as np
    from statsmodels.stats.inter_rater import cohens_kappa

    cells = [[said & success, said & ~success], [~said & success, ~said & ~success]]
    tables = np.array([[weights @ cell for cell in row] for row in cells]).transpose(2, 0, 1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return np.array(
            [
                cohens_kappa(table, return_results=False) if table.any() else np.nan
                for table in tables
            ]
        )


def gwet_ac1(ours: Sequence[int], theirs: Sequence[int], levels: int) -> Estimate | None:
    """Return Gwet's AC1, which stays meaningful where nearly everything gets the same level.

    After Gwet (2008), with his linearised variance.

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
    import numpy as np

    rated = np.array([ours, theirs])
    shares = np.bincount(rated.ravel(), minlength=levels) / rated.size
    chance = float((shares * (1 - shares)).sum()) / (levels - 1)
    agreed = rated[0] == rated[1]
    value = (float(agreed.mean()) - chance) / (1 - chance)
    own_chance = (1 - shares[rated]).mean(axis=0) / (levels - 1)
    own = (agreed - chance - 2 * (1 - value) * (own_chance - chance)) / (1 - chance)
    spread = float(((own - value) ** 2).sum())
    width = _student(count - 1) * math.sqrt(spread / (count * (count - 1)))
    return _bounded(value, value - width, value + width)


def corrected_rate(
    people: Sequence[bool], judge: Sequence[bool], rate: float, count: int
) -> tuple[float, float, Estimate | None]:
    """Correct a judge's rate of good sessions for the mistakes that labels show it makes.

    The estimate is Rogan and Gladen's (1978), the interval Lang and Reiczigel's (2014), which
    counts that sensitivity and specificity are themselves only estimated.

    Args:
        people: of the labelled sessions, whether people call them good.
        judge: of the same, whether the judge does.
        rate: the share of all judged sessions that the judge calls good.
        count: how many those are, one at least.

    Returns:
        Of the sessions that people call good the share that the judge does; of those that they
        call not good the share that it does not either; and the corrected rate, None when the
        judge tells good from bad no better than chance, or one kind has no label.
    """
    good = [said for truth, said in zip(people, judge, strict=True) if truth]
    bad = [said for truth, said in zip(people, judge, strict=True) if not truth]
    sensitivity = sum(good) / len(good) if good else math.nan
    specificity = 1 - sum(bad) / len(bad) if bad else math.nan
    estimate = None
    if sensitivity + specificity > 1:
        middle = (rate + specificity - 1) / (sensitivity + specificity - 1)
        low, high = _lang_reiczigel(sensitivity, len(good), specificity, len(bad), rate, count)
        middle = _fraction(middle)
        estimate = Estimate(middle, min(low, middle), max(high, middle))
    return sensitivity, specificity, estimate


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


def _bounded(value: float, low: float, high: float) -> Estimate:
    if not math.isfinite(low) or not math.isfinite(high):
        low, high = -1.0, 1.0
    return Estimate(value, max(-1.0, low), min(1.0, high))


def ranks(values: Sequence[float] | Floats) -> Floats:
    """Return the ranks of values from 1, those of equal ones averaged."""
    import numpy as np

    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    middles: Floats = np.cumsum(counts) - (counts - 1) / 2
    return middles[places]


def rank_correlation(
    ours: Sequence[float], theirs: Sequence[float], held: Sequence[float] = ()
) -> Estimate | None:
    """Return Spearman's rank correlation, with Fisher's interval.

    Args:
        ours: one value a session.
        theirs: of the same sessions.
        held: values that are held equal, for the partial correlation; none for the plain one.

    Returns:
        None where one of the two does not vary, or there are fewer than five sessions.
    """
    import numpy as np

    columns = (ours, theirs, held) if held else (ours, theirs)
    ranked = np.array([ranks(column) for column in columns])
    freedom = len(ours) - 1 - len(columns)
    known = np.vstack([np.ones(len(ours)), ranked[2:]]).T
    rest = ranked[:2].T - known @ np.linalg.lstsq(known, ranked[:2].T, rcond=None)[0]
    first, second = rest.T
    if freedom < 1 or min(np.abs(rest).max(axis=0)) < _EPSILON * len(ours):
        return None
    value = float(np.corrcoef(first, second)[0, 1])
    middle = math.atanh(max(-0.999999, min(0.999999, value)))
    width = Z / math.sqrt(freedom)
    return Estimate(value, math.tanh(middle - width), math.tanh(middle + width))


def isotonic(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the points of the rising steps nearest to the mean of ``y`` at each ``x``."""
    import numpy as np
    from scipy.optimize import isotonic_regression

    points, place = np.unique(x, return_inverse=True)
    weights = np.bincount(place)
    steps = isotonic_regression(np.bincount(place, y) / weights, weights=weights).x
    return points, np.asarray(steps)


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


def resampled(tasks: Sequence[str], resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Return the weights of sessions whose tasks are drawn again and again.

    How often each task is drawn is a Poisson variable of mean 1, which is the usual bootstrap
    where there are many tasks.
    """
    import numpy as np

    _, places = np.unique(np.asarray(tasks), return_inverse=True)
    drawn = np.random.default_rng(seed).poisson(1.0, (resamples, places.max(initial=0) + 1))
    return np.vstack([np.ones(len(places)), drawn[:, places]])


def estimate_of(draws: Floats) -> Estimate | None:
    """Return the first value with the interval of the others; None where it is not defined."""
    import numpy as np

    others = draws[1:][np.isfinite(draws[1:])]
    if not np.isfinite(draws[0]) or not len(others):
        return None
    low, high = np.percentile(others, (2.5, 97.5))
    return Estimate(float(draws[0]), float(low), float(high))


def auroc(scores: Floats, success: Bools, weights: Floats) -> Floats:
    """Return how often a success scores above a failure, a tie counting half, by resample."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    ordered, won = weights[:, order], success[order]
    good = np.add.reduceat(ordered * won, starts, axis=1)
    bad = np.add.reduceat(ordered * ~won, starts, axis=1)
    below = np.cumsum(bad, axis=1) - bad / 2
    return _ratio((good * below).sum(axis=1), good.sum(axis=1) * bad.sum(axis=1))


def brier_excess(probabilities: Floats, success: Bools, weights: Floats) -> Floats:
    """Return the Brier score minus that of the base rate, which is better below 0, by resample."""
    whole = weights.sum(axis=1)
    came = _ratio(weights @ success, whole)
    return _ratio(weights @ (probabilities - success) ** 2, whole) - came * (1 - came)


def mean_of_families(columns: Sequence[Floats]) -> Floats:
    """Return the mean over families, resample by resample; one without a value is left out."""
    import numpy as np

    together = np.array(columns)
    known = np.isfinite(together)
    return _ratio(np.where(known, together, 0.0).sum(axis=0), known.sum(axis=0).astype(float))


def _ratio(above: Floats, below: Floats) -> Floats:
    """Return a quotient, not a number where there is none."""
    import numpy as np

    quotient = np.full(above.shape, np.nan)
    np.divide(above, below, out=quotient, where=below != 0)
    return quotient

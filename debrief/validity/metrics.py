"""Metrics of scores against success, with intervals that count a task's runs as one.

Every metric takes weights, a row a resample and a column a session, and returns one value a row.
The first row is all ones: the estimate. The others draw whole tasks, so that ten runs of one task
are one observation and not ten; a task has the same weight in all families that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from debrief.rubrics.measures import Coefficient
from debrief.rubrics.probes import ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

RESAMPLES = 1_000
_BANDS = 5


class Band(Struct, frozen=True):
    """Sessions of about the same probability, and how many of them succeeded."""

    sessions: int
    said: float
    """Mean probability."""
    came: Coefficient
    """Share of successes."""


def resampled(tasks: Sequence[str], resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """Return the weights of sessions whose tasks are drawn again and again.

    How often each task is drawn is a Poisson variable of mean 1, which is the usual bootstrap
    where there are many tasks.
    """
    import numpy as np

    _, places = np.unique(np.asarray(tasks), return_inverse=True)
    drawn = np.random.default_rng(seed).poisson(1.0, (resamples, places.max(initial=0) + 1))
    return np.vstack([np.ones(len(places)), drawn[:, places]])


def estimate(values: Floats) -> Coefficient | None:
    """Return the first value with the interval of the others; None where it is not defined."""
    import numpy as np

    others = values[1:][np.isfinite(values[1:])]
    if not np.isfinite(values[0]) or not len(others):
        return None
    low, high = np.percentile(others, (2.5, 97.5))
    return Coefficient(float(values[0]), float(low), float(high))


def auroc(scores: Floats, success: Bools, weights: Floats) -> Floats:
    """Return how often a success scores above a failure, a tie counting half."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    ordered, won = weights[:, order], success[order]
    good = np.add.reduceat(ordered * won, starts, axis=1)
    bad = np.add.reduceat(ordered * ~won, starts, axis=1)
    below = np.cumsum(bad, axis=1) - bad / 2
    return _ratio((good * below).sum(axis=1), good.sum(axis=1) * bad.sum(axis=1))


def kappa(said: Bools, success: Bools, weights: Floats) -> Floats:
    """Return Cohen's kappa of "good" against success."""
    whole = weights.sum(axis=1)
    agreed = _ratio(weights @ (said == success), whole)
    called, came = _ratio(weights @ said, whole), _ratio(weights @ success, whole)
    chance = called * came + (1 - called) * (1 - came)
    return _ratio(agreed - chance, 1 - chance)


def brier_excess(probabilities: Floats, success: Bools, weights: Floats) -> Floats:
    """Return the Brier score minus that of the base rate, which is better below 0."""
    whole = weights.sum(axis=1)
    came = _ratio(weights @ success, whole)
    return _ratio(weights @ (probabilities - success) ** 2, whole) - came * (1 - came)


def calibration(probabilities: Floats, success: Bools, weights: Floats) -> tuple[Band, ...]:
    """Return five bands of as many sessions each, the least probable first."""
    import numpy as np

    bands = []
    for part in np.array_split(np.argsort(probabilities, kind="stable"), _BANDS):
        drawn = weights[:, part]
        came = estimate(_ratio(drawn @ success[part], drawn.sum(axis=1)))
        if came is not None:
            bands.append(Band(len(part), float(probabilities[part].mean()), came))
    return tuple(bands)


def outer_half(scores: Floats) -> Bools:
    """Return which half of the sessions is farthest from the middle rank, which are the surest."""
    import numpy as np

    distance = np.abs(ranks(scores) - (len(scores) + 1) / 2)
    return np.asarray(distance >= np.median(distance))


def mean(columns: Sequence[Floats]) -> Floats:
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

"""Group sessions into good and bad ones, and measure how far a rubric tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from debrief.keys import digest_of
from debrief.scoring.model import ScoreName, SessionScores
from debrief.scoring.verdict import SHORT_OF_DONE, VerdictName
from debrief.stats import cliffs_delta, rank_test


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
        return excellence_of(scores.verdict.verdict if scores.verdict is not None else None)
    value: float | None = getattr(scores, score_name)
    return value or None


def excellence_of(verdict: VerdictName | None) -> float | None:
    """Return 1 for what is done and checked, 0 for what is partly or not done, else None."""
    return 1.0 if verdict == "done_verified" else 0.0 if verdict in SHORT_OF_DONE else None


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


def effect_of(best: Sequence[float], worst: Sequence[float]) -> dict[str, float]:
    """Return Cliff's delta, its 95 % interval and its p-value, by the names of a trial's fields."""
    delta = cliffs_delta(best, worst)
    return {
        "effect": round(delta.value, 4),
        "low": round(delta.low, 4),
        "high": round(delta.high, 4),
        "p_value": round(rank_test(best, worst), 6),
        "best_count": len(best),
        "worst_count": len(worst),
    }

"""Tell good sessions from bad ones by a score name, and measure how far a rubric does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from debrief.keys import digest_of
from debrief.scoring.dimensions import BY_NAME, OVERALL
from debrief.scoring.model import SessionScores
from debrief.scoring.verdict import INCOMPLETE, SessionVerdict
from debrief.stats import cliffs_delta, rank_test

EXCELLENCE = "excellence"
EFFICIENCIES = ("token_efficiency", "user_turn_efficiency")
BUILT_IN = (EXCELLENCE, *EFFICIENCIES)
"""Score names whose values come with each session's scores, as far as it has them."""


class SessionValues(Struct, frozen=True, kw_only=True):
    """A session with its value by each score name that has one."""

    session_id: str
    started: datetime
    values: Mapping[str, float]


class Sides(Struct, frozen=True):
    """Good sessions and bad ones by their ids; where they are ranked, the best and the worst
    first."""

    best: tuple[str, ...]
    worst: tuple[str, ...]


def session_values(
    scores: SessionScores,
    names: Collection[str],
    verdict: SessionVerdict | None,
    labelled: Mapping[str, Mapping[str, float]],
) -> SessionValues:
    """Return a session's value by each of some score names.

    Args:
        scores: of the session.
        names: score names.
        verdict: on the session, whoever gave it; None where nobody did.
        labelled: values by labels, by name and session id.
    """
    values: dict[str, float] = {}
    for name in names:
        if is_by_labels(name):
            value = labelled.get(name, {}).get(scores.session_id)
        elif name == EXCELLENCE:
            value = excellence_of(verdict)
        else:
            value = _score_of(scores, name)
        if value is not None:
            values[name] = value
    return SessionValues(session_id=scores.session_id, started=scores.started, values=values)


def is_by_labels(score_name: str) -> bool:
    """Return whether labels of that name give a score name its values, and not the scorer."""
    return score_name not in (*BUILT_IN, OVERALL, *BY_NAME)


def _score_of(scores: SessionScores, score_name: str) -> float | None:
    """Return an efficiency, a dimension or the overall quality; None where there is none.

    The two efficiencies count lines: a session that changed none, a question answered, is
    neither efficient nor wasteful, and has none.
    """
    if score_name in EFFICIENCIES:
        efficiency: float | None = getattr(scores, score_name)
        return efficiency or None
    if score_name == OVERALL:
        return scores.overall_quality
    return next(
        (each.value for each in scores.dimension_scores if each.dimension == score_name), None
    )


def excellence_of(verdict: SessionVerdict | None) -> float | None:
    """Return 1 for what is complete and verified, 0 for what is partial or failed, else None."""
    if verdict is None:
        return None
    if verdict.verdict == "complete_verified":
        return 1.0
    return 0.0 if verdict.verdict in INCOMPLETE else None


def values_of(sessions: Iterable[SessionValues], score_name: str) -> dict[str, float]:
    """Return the values of those sessions that have one by a score name, by session id."""
    return {row.session_id: row.values[score_name] for row in sessions if score_name in row.values}


def is_yes_or_no(values: Collection[float], score_name: str) -> bool:
    """Return whether a score name only tells good from bad: excellence, or labels of yes and no."""
    return score_name == EXCELLENCE or (
        score_name not in EFFICIENCIES and bool(values) and set(values) <= {0.0, 1.0}
    )


def sides_of(
    values: Mapping[str, float], score_name: str, *, share: float, minimum: int
) -> Sides | None:
    """Return the good and the bad sessions by a score name, at least ``minimum`` on each side.

    By yes and no all are, in an order that says nothing of them, so that the first of a side stand
    for all of it; by a number, ``share`` of them at each end. None when there are too few, or when
    the ends are not apart.
    """
    if not is_yes_or_no(values.values(), score_name):
        return ends_of(values, share=share, minimum=minimum)
    good, bad = (
        tuple(id_ for id_ in _mixed(values) if (values[id_] > 0) == side) for side in (True, False)
    )
    return None if min(len(good), len(bad)) < minimum else Sides(good, bad)


def good_of(values: Mapping[str, float], score_name: str, *, share: float) -> tuple[str, ...]:
    """Return the good sessions by a score name that rubrics are extracted from.

    They are no more than ``share`` of all that have a value, and at least one. By yes and no they
    are drawn from the good ones; by a number they are the best, and there are none where all
    sessions are alike.
    """
    most = max(1, round(share * len(values)))
    if is_yes_or_no(values.values(), score_name):
        return tuple(id_ for id_ in _mixed(values) if values[id_] > 0)[:most]
    ends = ends_of(values, share=share, minimum=1)
    return ends.best if ends is not None else ()


def _mixed(ids: Iterable[str]) -> list[str]:
    return sorted(ids, key=lambda id_: digest_of("mixed", id_))


def ends_of(values: Mapping[str, float], *, share: float, minimum: int) -> Sides | None:
    """Return the best and the worst ``share`` of the sessions, at least ``minimum`` on each side.

    Fewer where many have the same value, so that the ends are apart. None when there are fewer
    than twice ``minimum``, or when no such ends are apart. Of sessions with equal values the id
    decides, so the answer depends on the values alone.
    """
    ranked = sorted(values, key=lambda id_: (-values[id_], id_))
    most = max(minimum, round(share * len(ranked)))
    if 2 * most > len(ranked):
        return None
    for count in range(most, minimum - 1, -1):
        best, worst = ranked[:count], ranked[: -count - 1 : -1]
        if values[best[-1]] > values[worst[-1]]:
            return Sides(tuple(best), tuple(worst))
    return None


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

"""Test rubrics on unseen sessions, those that nothing was mined from.

What is mined from sessions describes them, whether or not it says anything of others. So some
weeks are mined and the others are set aside. The test says of each rubric whether it tells the good
ones of those from the bad ones, after correction for all candidates that were looked at. It
informs: every rubric is kept.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from msgspec import Struct, structs

from debrief.keys import digest_of, week_of
from debrief.rubrics.contrast import (
    BUILT_IN,
    EXCELLENCE,
    SessionValues,
    Sides,
    effect_of,
    is_yes_or_no,
    sides_of,
    values_of,
)
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import (
    Finding,
    Rubric,
    RubricEvaluation,
    RubricJudge,
    RubricSearch,
    RubricTrial,
)
from debrief.sessions.model import Session
from debrief.stats import false_discovery, sessions_needed

MOST_JUDGEMENTS = 480
"""For the candidates of one score name."""
_ENOUGH = 40
"""Scored sessions on each side from which on whole weeks are mined or set aside."""
_SHARE, _MINIMUM = 0.25, 8
"""Of the sessions that were set aside, those at each end of an efficiency, and on each side at
least; fewer can prove nothing."""
_WORTH = 48
"""Sessions on each side that a limited number of judgements is spent on, candidate by candidate:
enough for a large effect to show."""
_MOST_CHANCE = 0.05
"""The highest corrected p-value: of what tells good from bad, that share is false at most."""
_NEGLIGIBLE = 0.147
"""Cliff's delta, after Romano, as the next ones."""
_EFFECTS = {"large": 0.474, "medium": 0.33}
_USUAL = 30
"""Candidates that a search looks at when it has sessions enough."""

ReadSessions = Callable[[Collection[str]], Iterable[Session]]
"""Gives the sessions of these ids."""


class Split(Struct, frozen=True):
    """Which sessions are mined; the others are set aside for trials."""

    by_week: bool
    """Every other week is mined; else, sessions being few, every other session."""

    def mines(self, scores: SessionValues) -> bool:
        """Return whether a session is mined."""
        if self.by_week:
            monday = date.fromisoformat(week_of(scores.started))
            return monday.toordinal() // 7 % 2 == 0
        return int(digest_of("mined", scores.session_id)[:8], 16) % 2 == 0


def split_of(sessions: Iterable[tuple[str, int]]) -> Split:
    """Return how sessions are split.

    Args:
        sessions: how many scored ones each week has; read no further than is needed.
    """
    sides = [0, 0]
    for week, count in sessions:
        sides[date.fromisoformat(week).toordinal() // 7 % 2] += count
        if min(sides) >= _ENOUGH:
            return Split(by_week=True)
    return Split(by_week=False)


def try_rubrics(
    candidates: Sequence[Rubric],
    read_sessions: ReadSessions,
    scores: Iterable[SessionValues],
    judge_by: RubricJudge,
    previous: Iterable[RubricEvaluation] = (),
    *,
    most_judgements: int = MOST_JUDGEMENTS,
    workers: int = 1,
) -> list[RubricTrial]:
    """Try the candidates of one score name on sessions that were set aside.

    Args:
        candidates: the heaviest first.
        read_sessions: where sessions come from, those of them that exist.
        scores: of the sessions that were set aside.
        judge_by: who judges; what it says is the same that it will say of all sessions later.
        previous: judgements that are known already, and count as asked.
        most_judgements: for all candidates.
        workers: calls at a time.

    Returns:
        One trial for each candidate, not yet corrected.
    """
    rows = list(scores)
    sides: dict[str, Sides] = {}
    reasons: dict[str, str] = {}
    left = most_judgements
    for place, rubric in enumerate(candidates):
        ends = _ends(rubric, rows)
        each = min(max(_WORTH, left // (2 * (len(candidates) - place))), left // 2)
        if isinstance(ends, str):
            reasons[rubric.key] = ends
        elif each < _MINIMUM:
            reasons[rubric.key] = "not tested: the limit of judgements is reached"
        else:
            sides[rubric.key] = Sides(ends.best[:each], ends.worst[:each])
            left -= len(sides[rubric.key].best) + len(sides[rubric.key].worst)
    pairs = {(id_, key) for key, ends in sides.items() for id_ in (*ends.best, *ends.worst)}
    levels: dict[tuple[str, str], int] = {}
    failed: Counter[str] = Counter()
    sessions = read_sessions(sorted({id_ for id_, _ in pairs}))
    for row in evaluate_rubrics(
        sessions, candidates, judge_by, previous, workers=workers, only=pairs
    ):
        if row.score is not None:
            levels[row.session_id, row.rubric_key] = row.score
        failed[row.rubric_key] += row.status == "failed"
    trials = []
    for rubric in candidates:
        reason, effect = reasons.get(rubric.key, ""), dict[str, Any]()
        if chosen := sides.get(rubric.key):
            best, worst = (
                [levels[id_, rubric.key] for id_ in ids if (id_, rubric.key) in levels]
                for ids in (chosen.best, chosen.worst)
            )
            if min(len(best), len(worst)) >= _MINIMUM:
                effect = effect_of(best, worst)
            else:
                reason = "not tested: too few of the sessions set aside give it an occasion"
        trials.append(
            RubricTrial(
                score_name=rubric.score_name,
                key=rubric.key,
                name=rubric.name,
                **effect,
                failed=failed[rubric.key],
                reason=reason,
                rubric=rubric,
            )
        )
    return trials


def _ends(rubric: Rubric, rows: Sequence[SessionValues]) -> Sides | str:
    """Return the sessions that a rubric is tested on, or why it is not tested."""
    values = values_of(rows, rubric.score_name)
    others = {id_: value for id_, value in values.items() if id_ not in rubric.sessions}
    sides = sides_of(others, rubric.score_name, share=_SHARE, minimum=_MINIMUM)
    if sides is None and is_yes_or_no(others.values(), rubric.score_name):
        missing = _sides_shown(_missing(others, _MINIMUM), rubric.score_name)
        return f"not tested: of those set aside, {missing} are missing"
    return sides or "not tested: too few sessions are set aside, or they score alike"


def _missing(values: Mapping[str, float], enough: int) -> tuple[int, int]:
    """Return how many good sessions, and how many bad ones, are missing until there are enough."""
    good = sum(value > 0 for value in values.values())
    return max(0, enough - good), max(0, enough - (len(values) - good))


def _sides_shown(missing: tuple[int, int], score_name: str, more: str = "") -> str:
    good, bad = missing
    if score_name == EXCELLENCE:
        return f"{good}{more} complete and verified and {bad}{more} partial or failed"
    return f"{good}{more} good ones and {bad}{more} bad ones"


def settle(trials: Sequence[RubricTrial]) -> list[RubricTrial]:
    """Return the trials of all score names, corrected for all candidates, with what each says."""
    given = [1.0 if trial.p_value is None else trial.p_value for trial in trials]
    return [
        _settled(trial, p) if trial.p_value is not None else trial
        for trial, p in zip(trials, false_discovery(given), strict=True)
    ]


def _settled(trial: RubricTrial, corrected_p: float) -> RubricTrial:
    finding: Finding
    if (trial.effect or 0.0) >= _NEGLIGIBLE and corrected_p <= _MOST_CHANCE:
        finding, reason = "tells", "it tells good sessions from bad ones"
    elif (trial.high or 0.0) < _EFFECTS["medium"]:
        finding, reason = "does_not_tell", "it does not tell good sessions from bad ones"
    else:
        finding, reason = "too_few", "too few sessions to rule out chance"
    return structs.replace(trial, corrected_p=round(corrected_p, 6), finding=finding, reason=reason)


def final_rubrics(trials: Iterable[RubricTrial]) -> list[Rubric]:
    """Return the rubrics of one score name, each with what unseen sessions say of it.

    All of them: in the order of their consolidation, the heaviest first.
    """
    return [
        structs.replace(
            trial.rubric,
            id=f"rubric_{place:03}",
            finding=trial.finding,
            finding_reason=trial.reason,
            held_out_effect=trial.effect,
            held_out_low=trial.low,
            held_out_high=trial.high,
            held_out_sessions=trial.best_count + trial.worst_count,
            corrected_p=trial.corrected_p,
        )
        for place, trial in enumerate(trials, 1)
    ]


def searches_of(
    score_names: Iterable[str],
    trials: Iterable[RubricTrial],
    scores: Iterable[SessionValues],
    split: Split,
    looked_at: int,
) -> list[RubricSearch]:
    """Return what the search came to for each score name."""
    confirmed = [trial for trial in trials if trial.finding == "tells"]
    rows = list(scores)
    found = []
    for name in score_names:
        scored = values_of(rows, name)
        mined = sum(row.session_id in scored and split.mines(row) for row in rows)
        aside = {
            row.session_id: scored[row.session_id]
            for row in rows
            if row.session_id in scored and not split.mines(row)
        }
        judged = [t.best_count + t.worst_count for t in confirmed if t.score_name == name]
        found.append(_search(name, mined, aside, looked_at, judged))
    return found


def _search(
    score_name: str,
    mined: int,
    aside: Mapping[str, float],
    looked_at: int,
    judged: Sequence[int],
) -> RubricSearch:
    """Return what it came to.

    Args:
        score_name: what good means.
        mined: sessions with a value that candidates were mined from.
        aside: values of the sessions that were set aside.
        looked_at: candidates of all score names.
        judged: the sessions that each rubric was judged on that tells good from bad.
    """
    chance, tried = _MOST_CHANCE / max(looked_at, _USUAL), len(aside)
    two_sided = is_yes_or_no(aside.values(), score_name)
    more = {
        size: _more_of_sides(sessions_needed(delta, chance), aside)
        if two_sided
        else (_more(sessions_needed(delta, chance), tried), 0)
        for size, delta in _EFFECTS.items()
    }
    size, missing = next((pair for pair in more.items() if any(pair[1])), ("medium", (0, 0)))
    needed = sum(missing)
    if judged:
        of = " to ".join(str(count) for count in sorted({min(judged), max(judged)}))
        ends = "" if two_sided else "the best and the worst of "
        said = (
            f"Mined from {mined} sessions and confirmed on {of} of {ends}{tried} others, "
            f"corrected for all {looked_at} candidates that were looked at."
        )
    elif not mined and not aside and score_name not in BUILT_IN:
        needed = 0
        said = f"No session has a value by {score_name}: label sessions with that name."
    else:
        lacks = _sides_shown(missing, score_name, " more") if two_sided else f"{needed} more"
        enough = f"yet: {lacks} are needed" if needed else "so far, though there are enough"
        ends = "those" if two_sided else "the best and the worst quarter of those"
        said = (
            f"Nothing distinguishes good sessions {enough} for a {size} effect to show 4 times in "
            f"5, if {ends} set aside are all judged ({mined} were mined, {tried} set aside)."
        )
    return RubricSearch(
        score_name=score_name,
        mined=mined,
        tried=tried,
        looked_at=looked_at,
        confirmed=len(judged),
        needed=needed,
        said=said,
    )


def _more_of_sides(judged: int, aside: Mapping[str, float]) -> tuple[int, int]:
    """Return how many more good and bad sessions give sides of half so many each, half of them
    being mined."""
    good, bad = _missing(aside, math.ceil(max(judged, 2 * _MINIMUM) / 2))
    return 2 * good, 2 * bad


def _more(ends: int, tried: int) -> int:
    """Return how many more sessions give ends of so many, half of them being mined."""
    return 2 * max(0, round(max(ends, 2 * _MINIMUM) / (2 * _SHARE)) - tried)

"""Consolidation: the rubrics of many weeks become one set, of which each one is tried.

What is mined from the best sessions describes them, whether or not it says anything about others.
So each rubric of a set is compared with the best and the worst of the sessions that it has not
seen, and one that does not tell them apart goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import structs

from debrief.rubrics.contrast import Effect, effect_of, ends_of, values_of
from debrief.rubrics.judging import evaluate_rubrics
from debrief.rubrics.model import (
    ExtractedRubric,
    Rubric,
    RubricEvaluation,
    RubricJudge,
    RubricTrial,
)
from debrief.scoring.model import ScoreName, SessionScores
from debrief.sessions.model import Session

FEWEST = 5
"""Rubrics that a set should have: for these a negligible effect in the right direction does."""
MOST = 10
MOST_JUDGEMENTS = 80
"""For trying a whole set; rubrics that this does not reach to are kept untried."""
_WORTH_KEEPING = 0.05
_DOUBT = 10
"""Sessions behind a rubric at which half of its effect is believed: few make extremes easy."""
_SHARE, _MINIMUM = 0.25, 4
"""Of the sessions that a rubric was not mined from, those on each side that it is tried on."""
_HALF = 0.499
"""Share that divides sessions which are ends already; of an odd number one is left over."""
_LEAST_EFFECT = 0.147
"""Cliff's delta, below which an effect counts as negligible."""
_OTHERS = "sessions that it was not mined from"

ReadSessions = Callable[[Collection[str]], Iterable[Session]]
"""Gives the sessions of these ids."""


def consolidate_offline(
    extracted: Iterable[ExtractedRubric], score_name: ScoreName
) -> list[Rubric]:
    """Merge rubrics mined offline into the final set of a score name, the heaviest first.

    The same habit of several weeks is one rubric. Its effect is pooled, weighted with how many
    sessions stood behind each week's; its strength is that effect times the share of weeks in
    which it was found at all, times a trust that grows from 0 to 1 with the sessions behind it:
    what shows every week outweighs what showed once. Ten at most are kept, and none that showed
    too rarely to be told from chance. There may be fewer than five: rubrics are found, not made
    up.
    """
    groups: dict[str, list[ExtractedRubric]] = {}
    for row in sorted(extracted, key=lambda row: (row.week, row.id)):
        groups.setdefault(row.habit, []).append(row)
    weeks = len({row.week for rows in groups.values() for row in rows})
    themes = []
    for habit, rows in groups.items():
        effect = _pooled(rows)
        sessions = tuple(dict.fromkeys(id_ for row in rows for id_ in row.sessions))
        found = len({row.week for row in rows}) / weeks
        strength = effect * found * (len(sessions) / (len(sessions) + _DOUBT))
        themes.append((-strength, habit, effect, sessions, rows))
    themes.sort(key=lambda theme: theme[:2])
    kept = [theme for theme in themes[:MOST] if -theme[0] >= _WORTH_KEEPING]
    return [
        Rubric(
            id=f"rubric_{place:03}",
            key=habit,
            score_name=score_name,
            name=rows[-1].name,
            description=rows[-1].description,
            scoring_criteria=rows[-1].scoring_criteria,
            weight=max(0.01, round(weakness / kept[0][0], 2)),
            habit=habit,
            effect_size=round(effect, 4),
            sources=tuple(row.id for row in rows),
            sessions=sessions,
            notes=_notes(rows, weeks),
        )
        for place, (weakness, habit, effect, sessions, rows) in enumerate(kept, 1)
    ]


def _pooled(rows: Sequence[ExtractedRubric]) -> float:
    """Return the mean effect, weighted with the harmonic mean of the two sides' counts."""
    weights = [
        2 * row.best_count * row.worst_count / (row.best_count + row.worst_count) for row in rows
    ]
    effects = ((row.effect_size or 0.0) * w for row, w in zip(rows, weights, strict=True))
    return sum(effects) / sum(weights)


def _notes(rows: Sequence[ExtractedRubric], weeks: int) -> str:
    found = sorted({row.week for row in rows})
    counts = sorted({row.best_count + row.worst_count for row in rows})
    span = " to ".join(dict.fromkeys((found[0], found[-1])))
    many = " to ".join(dict.fromkeys((str(counts[0]), str(counts[-1]))))
    text = (
        f"Found in {len(found)} of the {weeks} weeks that gave any rubric ({span}), on {many} "
        "sessions a week, neighbouring weeks sharing some"
    )
    if min(row.effect_low or 0.0 for row in rows) <= 0:
        text += "; in its weakest week chance is not ruled out"
    if unsure := sum("weak evidence" in row.notes for row in rows):
        text += f"; weak evidence in {unsure} of them"
    if any("computed in part from the same signals" in row.notes for row in rows):
        text += "; the score is computed in part from the same signals"
    return text + "."


def try_rubrics(
    rubrics: Sequence[Rubric],
    read_sessions: ReadSessions,
    scores: Iterable[SessionScores],
    judge_by: RubricJudge,
    previous: Iterable[RubricEvaluation] = (),
    *,
    most_judgements: int = MOST_JUDGEMENTS,
    workers: int = 1,
) -> tuple[list[Rubric], list[RubricTrial]]:
    """Hold the rubrics of one score name against sessions that they were not mined from.

    Args:
        rubrics: the heaviest first.
        read_sessions: where sessions come from, those of them that exist.
        scores: of all sessions.
        judge_by: who judges; what it says is the same that it will say of all sessions later.
        previous: judgements that are known already, and count as asked.
        most_judgements: for the whole set.
        workers: calls at a time.

    Returns:
        The rubrics that are kept, renumbered, and what the trial of each came to.
    """
    if not rubrics:
        return [], []
    values = values_of(scores, rubrics[0].score_name)
    unseen = {
        rubric.key: {id_: value for id_, value in values.items() if id_ not in rubric.sessions}
        for rubric in rubrics
    }
    pairs = set(_pairs(unseen, most_judgements))
    levels: dict[str, dict[str, int]] = {rubric.key: {} for rubric in rubrics}
    failed: Counter[str] = Counter()
    sessions = read_sessions(sorted({id_ for id_, _ in pairs}))
    for row in evaluate_rubrics(sessions, rubrics, judge_by, previous, workers=workers, only=pairs):
        if row.score is not None:
            levels[row.rubric_key][row.session_id] = row.score
        failed[row.rubric_key] += row.status == "failed"
    effects = {key: _effect(levels[key], values) for key in levels}
    kept = _kept(effects)
    shortage = _shortage(len(rubrics), len(kept))
    return (
        [
            _noted(rubric, place, effects[rubric.key], shortage)
            for place, rubric in enumerate((r for r in rubrics if r.key in kept), 1)
        ],
        [
            _trial(rubric, effects[rubric.key], failed[rubric.key], rubric.key in kept)
            for rubric in rubrics
        ],
    )


def _pairs(unseen: Mapping[str, Mapping[str, float]], left: int) -> Iterable[tuple[str, str]]:
    """Yield the session ids and rubric keys that are tried, within the limit."""
    for place, (key, values) in enumerate(unseen.items()):
        sides = ends_of(values, share=_SHARE, minimum=_MINIMUM)
        each = max(_MINIMUM, left // (2 * (len(unseen) - place)))
        if sides is not None and left >= 2 * _MINIMUM:
            chosen = (*sides.best[:each], *sides.worst[:each])
            left -= len(chosen)
            yield from ((id_, key) for id_ in chosen)


def _effect(levels: Mapping[str, int], values: Mapping[str, float]) -> Effect | None:
    sides = ends_of({id_: values[id_] for id_ in levels}, share=_HALF, minimum=_MINIMUM)
    if sides is None:
        return None
    return effect_of([levels[id_] for id_ in sides.best], [levels[id_] for id_ in sides.worst])


def _kept(effects: Mapping[str, Effect | None]) -> set[str]:
    kept = {key for key, e in effects.items() if e is None or e.delta >= _LEAST_EFFECT}
    barely = sorted(
        (-e.delta, key) for key, e in effects.items() if e and 0 < e.delta < _LEAST_EFFECT
    )
    return kept | {key for _, key in barely[: max(0, FEWEST - len(kept))]}


def _shortage(mined: int, kept: int) -> str:
    if kept >= FEWEST:
        return ""
    only = "Only this one rubric" if kept == 1 else f"Only {kept} rubrics"
    others = ", or not on other sessions" if kept < mined else ""
    return f"{only}: no other habit set the best sessions apart{others}."


def _noted(rubric: Rubric, place: int, effect: Effect | None, shortage: str) -> Rubric:
    if effect is None:
        words = f"Not tried: too few {_OTHERS}."
    else:
        words = (
            f"On {_OTHERS} ({effect.best_count} best against {effect.worst_count} worst): "
            f"{effect.delta:+.2f} ({effect.low:+.2f} to {effect.high:+.2f})"
            f"{'' if effect.low > 0 else ', chance not ruled out'}."
        )
    return structs.replace(
        rubric,
        id=f"rubric_{place:03}",
        held_out_effect=None if effect is None else round(effect.delta, 4),
        held_out_sessions=0 if effect is None else effect.best_count + effect.worst_count,
        notes=" ".join(filter(None, (rubric.notes, words, shortage))),
    )


def _trial(rubric: Rubric, effect: Effect | None, failed: int, kept: bool) -> RubricTrial:
    if effect is None:
        reason = f"not tried: too few {_OTHERS}"
    elif effect.delta >= _LEAST_EFFECT:
        reason = f"it separates {_OTHERS}"
    elif effect.delta <= 0:
        reason = f"it does not separate {_OTHERS}"
    else:
        small = "; kept because the set is small" if kept else ""
        reason = f"it hardly separates {_OTHERS}{small}"
    row = RubricTrial(
        score_name=rubric.score_name,
        key=rubric.key,
        name=rubric.name,
        failed=failed,
        kept=kept,
        reason=reason,
    )
    if effect is None:
        return row
    return structs.replace(row, **effect.rounded())

"""Consolidation: the rubrics of many weeks become one set, of which each one is tried.

What is mined from the best sessions describes them, whether or not it says anything about others.
So each rubric of a set is compared with the best and the worst of the sessions that it has not
seen, and one that does not tell them apart goes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct, structs

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
from debrief.slugs import slugify

FEWEST = 5
MOST = 10
_WORTH_KEEPING = 0.05
_DOUBT = 10
"""Sessions behind a rubric at which half of its effect is believed: few make extremes easy."""


class _Theme(Struct, frozen=True):
    """The same rubric, mined in one or several weeks."""

    key: str
    rows: tuple[ExtractedRubric, ...]
    effect: float
    strength: float
    """The pooled effect, times the share of weeks in which it was found, times a trust that
    grows from 0 to 1 with the sessions behind it."""


def consolidate_offline(
    extracted: Iterable[ExtractedRubric], score_name: ScoreName
) -> list[Rubric]:
    """Merge mined rubrics into the final set of a score name, the heaviest first.

    The same habit of several weeks is one rubric. Its effect is pooled, weighted with how many
    sessions stood behind each week's; its strength is that effect times the share of weeks in
    which it was found at all, and less where few sessions stand behind it, so that what shows
    every week outweighs what showed once. Ten at
    most are kept, and none that showed too rarely to be told from chance. There may be fewer than
    five: rubrics are found, not made up.
    """
    rows = sorted(
        (row for row in extracted if row.score_name == score_name),
        key=lambda row: (row.week, row.id),
    )
    weeks = {row.week for row in rows}
    groups: dict[str, list[ExtractedRubric]] = {}
    for row in rows:
        groups.setdefault(key_of(row.habit, row.name), []).append(row)
    themes = [_theme(key, group, len(weeks)) for key, group in groups.items()]
    themes.sort(key=lambda theme: (-theme.strength, theme.key))
    kept = [theme for theme in themes[:MOST] if theme.strength >= _WORTH_KEEPING]
    heaviest = max((theme.strength for theme in kept), default=0.0)
    return [
        _rubric(theme, place, heaviest, score_name, len(weeks))
        for place, theme in enumerate(kept, 1)
    ]


def key_of(habit: str, name: str) -> str:
    """Return a rubric's identity: its habit, else its name as a slug."""
    return habit or slugify("-".join(name.casefold().split()))


def _theme(key: str, rows: Sequence[ExtractedRubric], weeks: int) -> _Theme:
    measured = [(row.effect_size, _weight(row)) for row in rows if row.effect_size is not None]
    total = sum(weight for _, weight in measured)
    effect = sum(size * weight for size, weight in measured) / total if total else 0.0
    sessions = len({id_ for row in rows for id_ in _sessions_of(row)})
    trust = sessions / (sessions + _DOUBT)
    found = len({row.week for row in rows}) / weeks
    return _Theme(key, tuple(rows), effect, (effect if measured else 1.0) * found * trust)


def _weight(row: ExtractedRubric) -> float:
    """Return how much a week's effect counts: the harmonic mean of the two sides' counts."""
    both = row.best_count + row.worst_count
    return 2 * row.best_count * row.worst_count / both if both else 1.0


def _rubric(
    theme: _Theme, place: int, heaviest: float, score_name: ScoreName, weeks: int
) -> Rubric:
    latest = theme.rows[-1]
    measured = any(row.effect_size is not None for row in theme.rows)
    return Rubric(
        id=f"rubric_{place:03}",
        key=theme.key,
        score_name=score_name,
        name=latest.name,
        description=latest.description,
        scoring_criteria=latest.scoring_criteria,
        weight=max(0.01, round(theme.strength / heaviest, 2)) if heaviest > 0 else 1.0,
        habit=latest.habit,
        effect_size=round(theme.effect, 4) if measured else None,
        sources=tuple(row.id for row in theme.rows),
        sessions=tuple(dict.fromkeys(id_ for row in theme.rows for id_ in _sessions_of(row))),
        notes=_notes(theme, weeks),
    )


def _sessions_of(row: ExtractedRubric) -> tuple[str, ...]:
    return row.sessions or tuple(piece.session_id for piece in row.evidence)


def _notes(theme: _Theme, weeks: int) -> str:
    found = sorted({row.week for row in theme.rows})
    counts = [row.best_count + row.worst_count for row in theme.rows]
    span = found[0] if len(found) == 1 else f"{found[0]} to {found[-1]}"
    low = [row.effect_low for row in theme.rows if row.effect_low is not None]
    text = f"Found in {len(found)} of the {weeks} weeks that gave any rubric ({span})"
    if any(counts):
        many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        text += f", on {many} sessions a week, neighbouring weeks sharing some"
    if low and min(low) <= 0:
        text += "; in its weakest week chance is not ruled out"
    unsure = sum("weak evidence" in row.notes for row in theme.rows)
    if unsure:
        text += f"; weak evidence in {unsure} of them"
    if any("computed in part from the same signals" in row.notes for row in theme.rows):
        text += "; the score is computed in part from the same signals"
    return text + "."


ReadSessions = Callable[[Collection[str]], Iterable[Session]]
"""Gives the sessions of these ids."""


_HALF = 0.499
"""Share that divides sessions which are ends already; of an odd number one is left over."""


class TrialOptions(Struct, frozen=True, kw_only=True):
    """How many sessions a rubric is tried on, and what it has to show."""

    share: float = 0.25
    """Of the sessions that it was not mined from, on each side."""
    minimum: int = 4
    """Sessions on each side."""
    most_judgements: int = 80
    """For a whole set; rubrics that this does not reach to are kept untried."""
    least_effect: float = 0.147
    """Cliff's delta, below which an effect counts as negligible."""
    fewest: int = FEWEST
    """Rubrics that a set should have: for these a negligible effect in the right direction does."""


class Tried(Struct, frozen=True):
    """The rubrics that are kept, renumbered, and what the trial of each came to."""

    rubrics: tuple[Rubric, ...]
    trials: tuple[RubricTrial, ...]


def try_rubrics(
    rubrics: Sequence[Rubric],
    read_sessions: ReadSessions,
    scores: Iterable[SessionScores],
    judge_by: RubricJudge,
    previous: Iterable[RubricEvaluation] = (),
    *,
    options: TrialOptions | None = None,
    workers: int = 1,
) -> Tried:
    """Hold the rubrics of one score name against sessions that they were not mined from.

    Args:
        rubrics: the heaviest first.
        read_sessions: where sessions come from, those of them that exist.
        scores: of all sessions.
        judge_by: who judges; what it says is the same that it will say of all sessions later.
        previous: judgements that are known already, and count as asked.
        options: how many sessions, and what is to be shown.
        workers: calls at a time.
    """
    options = options or TrialOptions()
    if not rubrics:
        return Tried((), ())
    score_name = rubrics[0].score_name
    values = values_of(scores, score_name)
    unseen = {
        rubric.key: {id_: value for id_, value in values.items() if id_ not in rubric.sessions}
        for rubric in rubrics
    }
    chosen = _chosen(rubrics, unseen, options)
    pairs = {(id_, key) for key, ids in chosen.items() for id_ in ids}
    levels: dict[str, dict[str, int]] = {}
    failed: dict[str, int] = {}
    known = [row for row in previous if row.score_name == score_name]
    sessions = read_sessions(sorted({id_ for id_, _ in pairs})) if pairs else ()
    for row in evaluate_rubrics(sessions, rubrics, judge_by, known, workers=workers, only=pairs):
        if row.score is not None:
            levels.setdefault(row.rubric_key, {})[row.session_id] = row.score
        elif row.status == "failed":
            failed[row.rubric_key] = failed.get(row.rubric_key, 0) + 1
    effects = {
        rubric.key: _effect(levels.get(rubric.key, {}), unseen[rubric.key], options)
        for rubric in rubrics
    }
    kept = _kept(rubrics, effects, options)
    shortage = _shortage(len(rubrics), len(kept), options.fewest)
    return Tried(
        tuple(
            _noted(rubric, place, effects[rubric.key], shortage)
            for place, rubric in enumerate((r for r in rubrics if r.key in kept), 1)
        ),
        tuple(
            _trial(
                rubric,
                effects[rubric.key],
                failed.get(rubric.key, 0),
                rubric.key in kept,
                options.least_effect,
            )
            for rubric in rubrics
        ),
    )


def _chosen(
    rubrics: Sequence[Rubric], unseen: Mapping[str, Mapping[str, float]], options: TrialOptions
) -> dict[str, tuple[str, ...]]:
    """Return the sessions that each rubric is tried on, by key, within the limit."""
    left = options.most_judgements
    chosen: dict[str, tuple[str, ...]] = {}
    for place, rubric in enumerate(rubrics):
        sides = ends_of(unseen[rubric.key], share=options.share, minimum=options.minimum)
        each = max(options.minimum, left // (2 * (len(rubrics) - place)))
        if sides is not None and 2 * options.minimum <= left:
            chosen[rubric.key] = (*sides.best[:each], *sides.worst[:each])
            left -= len(chosen[rubric.key])
    return chosen


def _effect(
    levels: Mapping[str, int], unseen: Mapping[str, float], options: TrialOptions
) -> Effect | None:
    judged = {id_: unseen[id_] for id_ in levels}
    sides = ends_of(judged, share=_HALF, minimum=options.minimum)
    if sides is None:
        return None
    return effect_of([levels[id_] for id_ in sides.best], [levels[id_] for id_ in sides.worst])


def _kept(
    rubrics: Sequence[Rubric], effects: Mapping[str, Effect | None], options: TrialOptions
) -> set[str]:
    kept: set[str] = set()
    barely: list[tuple[float, str]] = []
    for rubric in rubrics:
        effect = effects[rubric.key]
        if effect is None or effect.delta >= options.least_effect:
            kept.add(rubric.key)
        elif effect.delta > 0:
            barely.append((-effect.delta, rubric.key))
    for _, key in sorted(barely)[: max(0, options.fewest - len(kept))]:
        kept.add(key)
    return kept


def _shortage(mined: int, kept: int, fewest: int) -> str:
    if kept >= fewest:
        return ""
    only = "Only this one rubric" if kept == 1 else f"Only {kept} rubrics"
    why = "no other habit set the best sessions apart"
    return f"{only}: {why}{', or not on other sessions' if kept < mined else ''}."


def _noted(rubric: Rubric, place: int, effect: Effect | None, shortage: str) -> Rubric:
    return structs.replace(
        rubric,
        id=f"rubric_{place:03}",
        held_out_effect=None if effect is None else round(effect.delta, 4),
        held_out_sessions=0 if effect is None else effect.best_count + effect.worst_count,
        notes=" ".join(part for part in (rubric.notes, _words(effect), shortage) if part),
    )


def _words(effect: Effect | None) -> str:
    if effect is None:
        return "Not tried: too few sessions that it was not mined from."
    side = f"{effect.best_count} best against {effect.worst_count} worst"
    caveat = "" if effect.low > 0 else ", chance not ruled out"
    return (
        f"On sessions that it was not mined from ({side}): {effect.delta:+.2f} "
        f"({effect.low:+.2f} to {effect.high:+.2f}){caveat}."
    )


def _trial(
    rubric: Rubric, effect: Effect | None, failed: int, kept: bool, least_effect: float
) -> RubricTrial:
    row = RubricTrial(
        score_name=rubric.score_name,
        key=rubric.key,
        name=rubric.name,
        failed=failed,
        kept=kept,
        reason="not tried: too few sessions that it was not mined from",
    )
    if effect is None:
        return row
    return structs.replace(
        row,
        effect=round(effect.delta, 4),
        low=round(effect.low, 4),
        high=round(effect.high, 4),
        p_value=round(effect.p_value, 6),
        best_count=effect.best_count,
        worst_count=effect.worst_count,
        reason=_reason(effect, kept, least_effect),
    )


def _reason(effect: Effect, kept: bool, least_effect: float) -> str:
    if effect.delta >= least_effect:
        return "it separates sessions that it was not mined from"
    if effect.delta <= 0:
        return "it does not separate sessions that it was not mined from"
    hardly = "it hardly separates sessions that it was not mined from"
    return f"{hardly}; kept because the set is small" if kept else hardly

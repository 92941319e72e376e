"""Consolidation: the rubrics of many weeks become one set for a score name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from debrief.rubrics.model import ExtractedRubric, Rubric
from debrief.scoring.model import ScoreName
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

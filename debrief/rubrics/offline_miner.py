"""Mining without a model: which habits of the user set the best sessions apart.

The best and the worst sessions by a score name are compared, habit by habit. A
habit becomes a rubric when the best sessions show it clearly more, when chance alone would
seldom do that, and when it shows in both halves of the sessions, so that it separates sessions
that it was not found in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from debrief.offline.habit_detectors import Detection
from debrief.offline.habits import HABITS, Habit, detect_habits
from debrief.rubrics.asking import stands
from debrief.rubrics.consolidation import consolidate_offline
from debrief.rubrics.contrast import (
    Effect,
    Sides,
    cliffs_delta,
    effect_of,
    ends_of,
    false_discovery,
    halves_of,
    values_of,
)
from debrief.rubrics.model import DroppedRubric, Evidence, ExtractedRubric, Mined, Rubric
from debrief.scoring.model import ScoreName, SessionScores
from debrief.sessions.model import Session
from debrief.weeks import week_of

EXTRACTOR = "offline"
EARLIER_WEEKS = 3
"""How many earlier weeks a small week may borrow sessions from."""


class ExtractionOptions(Struct, frozen=True, kw_only=True):
    """What counts as best, and as separating."""

    share: float = 0.25
    """Of the sessions, on each side."""
    minimum: int = 4
    """Sessions on each side; with three, one habit of twenty separates them by chance alone."""
    enough: int = 20
    """Sessions of a week that stand alone; a smaller one takes earlier sessions in."""
    least_effect: float = 0.33
    """Cliff's delta of a medium effect."""
    most_chance: float = 0.1
    """The highest p-value: exploratory, and each rubric says its own."""
    least_held_out: float = 0.147
    """The effect, in each half, below which it counts as negligible."""
    most_rubrics: int = 10
    most_evidence: int = 3


class _HabitContrast(Struct, frozen=True, kw_only=True):
    """One habit, best against worst."""

    habit: Habit
    effect: Effect
    corrected_p: float
    """The p-value corrected for the number of habits looked at."""
    held_out: float | None
    reason: str
    """Why it is no rubric; empty when it is one."""


class _Seen(Struct, frozen=True):
    """A session as extraction needs it, so that the session itself can be let go."""

    id: str
    week: str
    detections: Mapping[str, Detection]
    evidence: Mapping[str, tuple[Evidence, ...]]


class _Ground(Struct, frozen=True):
    """The sessions that a contrast stands on."""

    seen: Mapping[str, _Seen]
    values: Mapping[str, float]
    borrowed: int
    """Of the values, how many come from earlier weeks."""
    sides: Sides


class OfflineMiner:
    """Finds rubrics by contrast of habits.

    Args:
        options: thresholds.
    """

    name = EXTRACTOR

    def __init__(self, options: ExtractionOptions | None = None) -> None:
        self._options = options or ExtractionOptions()

    def extract(
        self,
        sessions: Iterable[Session],
        scores: Iterable[SessionScores],
        score_name: ScoreName,
        week: str,
        earlier: Iterable[Session] = (),
        earlier_scores: Iterable[SessionScores] = (),
    ) -> Mined:
        """Return the habits that set the week's best sessions apart, and those that do not.

        A week with fewer than ``options.enough`` scored sessions is too small to have a best and
        a worst quarter of its own. It is ranked together with the ``earlier`` sessions, those of
        the three weeks before, and each rubric says so; when none of the week's own sessions
        reach either end, the week has nothing new to say and nothing is extracted.

        Args:
            sessions: of the week.
            scores: of the week; a session without a usable score is left out.
            score_name: what good means.
            week: the ISO date of its Monday.
            earlier: sessions of the three weeks before, used for a small week only.
            earlier_scores: theirs.

        Returns:
            Rubrics, the strongest effect first, none when the sessions prove nothing; and each
            habit that is none, with its effect and the reason.
        """
        options = self._options
        values = values_of(scores, score_name)
        seen = {s.id: _see(s) for s in sessions if s.id in values}
        borrowed = 0
        if len(seen) < options.enough:
            more = values_of(earlier_scores, score_name)
            for session in earlier:
                if session.id in more and session.id not in seen:
                    seen[session.id] = _see(session)
                    values[session.id] = more[session.id]
                    borrowed += 1
        usable = {id_: values[id_] for id_, one in seen.items() if one.detections}
        sides = ends_of(usable, share=options.share, minimum=options.minimum)
        if sides is None:
            return Mined()
        ends = {*sides.best, *sides.worst}
        if borrowed and not any(seen[id_].week == week for id_ in ends):
            return Mined()
        ground = _Ground(seen, usable, borrowed, sides)
        contrasts = _contrasts(ground, options)
        kept = [contrast for contrast in contrasts if not contrast.reason]
        return Mined(
            rubrics=tuple(
                _rubric(contrast, ground, score_name, week, options)
                for contrast in kept[: options.most_rubrics]
            ),
            dropped=tuple(
                DroppedRubric(
                    score_name=score_name,
                    extractor=EXTRACTOR,
                    name=each.habit.name,
                    effect=round(each.effect.delta, 4),
                    reason=each.reason,
                )
                for each in contrasts
                if each.reason
            ),
        )

    def consolidate(
        self,
        extracted: Iterable[ExtractedRubric],
        score_name: ScoreName,
        previous: Iterable[Rubric] = (),
    ) -> list[Rubric]:
        """Return the final set, the strongest first; a habit is its own key."""
        return consolidate_offline(extracted, score_name)


_SEEN: dict[tuple[str, str], _Seen] = {}
_MOST_SEEN = 5_000


def _see(session: Session) -> _Seen:
    """Look at a session once, however many score names and weeks ask for it."""
    key = (session.id, session.digest)
    seen = _SEEN.get(key) if session.digest else None
    if seen is None:
        detections = detect_habits(session)
        evidence = {
            habit: tuple(
                quote
                for seen in detection.sightings
                if stands(
                    quote := Evidence(session_id=session.id, turn=seen.turn, quote=seen.quote),
                    session,
                )
            )
            for habit, detection in detections.items()
        }
        seen = _Seen(session.id, week_of(session.started), detections, evidence)
        if len(_SEEN) >= _MOST_SEEN:
            _SEEN.clear()
        _SEEN[key] = seen
    return seen


def _contrasts(ground: _Ground, options: ExtractionOptions) -> list[_HabitContrast]:
    measured = []
    for habit in HABITS:
        best, worst = (
            _levels(ground, habit, side) for side in (ground.sides.best, ground.sides.worst)
        )
        if min(len(best), len(worst)) >= options.minimum:
            measured.append((habit, effect_of(best, worst)))
    corrected = false_discovery(effect.p_value for _, effect in measured)
    contrasts = [
        _HabitContrast(
            habit=habit,
            effect=effect,
            corrected_p=corrected_p,
            held_out=(held_out := _held_out(ground, habit, options)),
            reason=_why_not(effect, held_out, options),
        )
        for (habit, effect), corrected_p in zip(measured, corrected, strict=True)
    ]
    return sorted(contrasts, key=lambda c: (-c.effect.delta, c.effect.p_value, c.habit.key))


def _levels(ground: _Ground, habit: Habit, ids: Sequence[str]) -> list[float]:
    detections = (ground.seen[id_].detections.get(habit.key) for id_ in ids)
    return [detection.level for detection in detections if detection is not None]


def _held_out(ground: _Ground, habit: Habit, options: ExtractionOptions) -> float | None:
    deltas = []
    for half in halves_of(
        {i: v for i, v in ground.values.items() if habit.key in ground.seen[i].detections}
    ):
        sides = ends_of(half, share=options.share, minimum=options.minimum)
        if sides is None:
            return None
        best, worst = (_levels(ground, habit, side) for side in (sides.best, sides.worst))
        if not best or not worst:
            return None
        deltas.append(cliffs_delta(best, worst))
    return min(deltas)


def _why_not(effect: Effect, held_out: float | None, options: ExtractionOptions) -> str:
    if effect.delta <= -options.least_effect:
        return "the worst sessions show it more"
    if effect.delta < options.least_effect:
        return "too small an effect"
    if effect.p_value > options.most_chance + 1e-9:
        return "chance would do that too often"
    if held_out is not None and held_out < options.least_held_out:
        return "it does not hold in both halves of the sessions"
    return ""


def _rubric(
    contrast: _HabitContrast,
    ground: _Ground,
    score_name: ScoreName,
    week: str,
    options: ExtractionOptions,
) -> ExtractedRubric:
    habit, effect = contrast.habit, contrast.effect
    return ExtractedRubric(
        id=f"{week}.{score_name}.{habit.key}",
        score_name=score_name,
        week=week,
        name=habit.name,
        description=habit.description,
        scoring_criteria=habit.scoring_criteria,
        evidence=_best_evidence(habit, ground, week, options.most_evidence),
        extractor=EXTRACTOR,
        habit=habit.key,
        effect_size=round(effect.delta, 4),
        best_count=effect.best_count,
        worst_count=effect.worst_count,
        effect_low=round(effect.low, 4),
        effect_high=round(effect.high, 4),
        p_value=round(effect.p_value, 6),
        held_out_effect=None if contrast.held_out is None else round(contrast.held_out, 4),
        sessions=(*ground.sides.best, *ground.sides.worst),
        notes=_notes(contrast, ground, score_name),
    )


def _best_evidence(habit: Habit, ground: _Ground, week: str, most: int) -> tuple[Evidence, ...]:
    """Quote the best sessions that show the habit most, the week's own before borrowed ones."""
    shown = [
        (detection.level, seen.week == week, -place, seen)
        for place, id_ in enumerate(ground.sides.best)
        if (detection := (seen := ground.seen[id_]).detections.get(habit.key))
        and detection.level >= 3
    ]
    shown.sort(key=lambda item: item[:3], reverse=True)
    quotes = (seen.evidence[habit.key] for _, _, _, seen in shown if seen.evidence[habit.key])
    return tuple(pieces[0] for _, pieces in zip(range(most), quotes, strict=False))


def _notes(contrast: _HabitContrast, ground: _Ground, score_name: ScoreName) -> str:
    effect, sides, values = contrast.effect, ground.sides, ground.values
    parts = [
        f"The best {len(sides.best)} of {len(values)} sessions ({values[sides.best[-1]]:.3g} to "
        f"{values[sides.best[0]]:.3g}) against the worst {len(sides.worst)} "
        f"({values[sides.worst[0]]:.3g} to {values[sides.worst[-1]]:.3g})",
        f"Cliff's delta {effect.delta:.2f} ({effect.low:.2f} to {effect.high:.2f}), "
        f"p {effect.p_value:.3f}, {contrast.corrected_p:.3f} corrected for all habits",
        f"{_strength(contrast)} evidence",
    ]
    if contrast.held_out is None:
        parts.append("too few sessions to check it on held-out ones")
    else:
        parts.append(f"at least {contrast.held_out:.2f} in each half of the sessions")
    if ground.borrowed:
        parts.append(f"{ground.borrowed} of the sessions are from the weeks before")
    if score_name in contrast.habit.shares:
        parts.append(f"{score_name} is computed in part from the same signals")
    return "; ".join(parts) + "."


def _strength(contrast: _HabitContrast) -> str:
    if contrast.corrected_p <= 0.05 and contrast.held_out is not None:
        return "strong"
    return "moderate" if contrast.effect.p_value <= 0.05 else "weak"

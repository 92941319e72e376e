"""The rubric judge that needs no model: it looks at the habit behind a rubric."""

from __future__ import annotations

from debrief.errors import InputError
from debrief.offline.dialogue import Dialogue
from debrief.offline.habit_detectors import Detection
from debrief.offline.habits import Habit, habit_of, nearest_habit
from debrief.rubrics.model import NoOccasionError, Rubric, RubricJudgement
from debrief.sessions.model import Session

_LEAST_CLOSENESS = 0.3


class OfflineRubricJudge:
    """Scores the user's observable habits, and quotes the turns that show them.

    A rubric that was mined offline names its habit. Any other is matched to the habit whose
    words are nearest to its own, and the reasoning says so; one that is near to none is refused.
    """

    model = "offline"

    def judge_rubric(self, rubric: Rubric, session: Session) -> RubricJudgement:
        """Judge one session.

        Raises:
            NoOccasionError: the session has no human prompt, or gives the habit no occasion.
            InputError: no habit is near the rubric.
        """
        habit, caveat = _habit_behind(rubric)
        dialogue = Dialogue(session)
        if not dialogue.prompts:
            raise NoOccasionError(f"session {session.id}", "has no human prompt")
        look = habit.detect(dialogue)
        if look is None:
            raise NoOccasionError(
                f"session {session.id}", f'gives no occasion for "{habit.name}"{caveat}'
            )
        return RubricJudgement(
            score=look.level, reasoning=_reasoning(habit, look) + caveat, cost_usd=0.0
        )


def _habit_behind(rubric: Rubric) -> tuple[Habit, str]:
    if habit := habit_of(rubric.habit):
        return habit, ""
    words = f"{rubric.name} {rubric.name} {rubric.description} {rubric.scoring_criteria}"
    habit, closeness = nearest_habit(words)
    if closeness < _LEAST_CLOSENESS:
        raise InputError(
            f"rubric {rubric.key or rubric.id}",
            "is not near any habit that can be observed without a model",
            "Judge it with a model",
        )
    return habit, (
        f' Judged offline by the nearest observable habit, "{habit.name}" '
        f"(closeness {closeness:.2f} of 1)."
    )


def _reasoning(habit: Habit, look: Detection) -> str:
    seen = "; ".join(f"turn {s.turn}: “{s.quote}”" for s in look.sightings if s.quote)
    where = f" Evidence: {seen}." if seen else ""
    return f"The user {look.finding}.{where} On the scale: {habit.scale[look.level - 1]}."

"""What reviews are asked beside their own questions: standing ones, and known friction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from debrief.friction.schema import ALL, RECURRING, RecurringFriction
from debrief.lake import Lake
from debrief.questions.schema import questions_in
from debrief.scoring.model import AskedQuestion
from debrief.sessions.model import Session

_MOST_FRICTION = 5
"""Frictions of a repository that its sessions are asked about, the first of the list."""


def friction_question(friction: RecurringFriction) -> AskedQuestion:
    """Return the question whether a session shows a known friction."""
    what = friction.what.rstrip(".?!").replace("”", '"')
    return AskedQuestion(id=friction.id, text=f"Did what these words name go wrong here: “{what}”?")


def known_friction(lake: Lake) -> dict[str, RecurringFriction]:
    """Return the friction that reviews found, by its id."""
    return {row.id: row for row in lake.read(RECURRING, ALL, RecurringFriction) if row.by}


def standing_questions(lake: Lake) -> Callable[[Session], Sequence[AskedQuestion]]:
    """Return what gives the questions of a session: those that a person made standing, and the
    friction that reviews found before in its repository."""
    asked = [
        AskedQuestion(id=each.id, text=each.text) for each in questions_in(lake) if each.standing
    ]
    by_repository: dict[str, list[AskedQuestion]] = defaultdict(list)
    for row in known_friction(lake).values():
        by_repository[row.repository].append(friction_question(row))

    def questions(session: Session) -> Sequence[AskedQuestion]:
        return [*asked, *by_repository.get(session.repository, [])[:_MOST_FRICTION]]

    return questions

"""A habit is not offered where the verdict is made of what it reads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from debrief.offline.evaluator import OfflineEvaluator
from debrief.rubrics.habits.catalogue import detect_habits, habit_of
from debrief.scoring.scorer import score_session
from debrief.sessions.model import Intervention, Session
from tests.training.scenario import call, says, session, turn

ASKED = "Add a menu to app/page.py"
EDIT = call("Edit", {"file_path": "app/page.py"}, path="app/page.py", added=1, patch="@@\n+menu\n")
DONE = says("The menu is in the page now. " * 60)
WORK = (says("", EDIT), says("", call()), says("", call("Read", {"file_path": "a.py"})), DONE)


def worked(then: str, *deeds: Intervention) -> Session:
    second = turn(then, says("I did."), number=2)
    return session("s1", turn(ASKED, *WORK), replace(second, interventions=deeds))


NEXT = "Now add the footer to app/page.py"
PLAIN = worked(NEXT)


@pytest.mark.parametrize(
    ("habit", "other"),
    [
        ("closes-the-loop", worked(NEXT, Intervention(kind="interruption"))),
        ("lets-it-finish", worked(NEXT, Intervention(kind="interruption"))),
    ],
)
def test_a_habit_that_moves_the_verdict_by_itself_is_not_offered_for_it(
    habit: str, other: Session
) -> None:
    assert detect_habits(PLAIN)[habit].level != detect_habits(other)[habit].level
    before, after = (score_session(one, OfflineEvaluator()).verdict for one in (PLAIN, other))
    assert before is not None
    assert after is not None
    assert before.verdict != after.verdict
    known = habit_of(habit)
    assert known is not None
    assert "excellence" in known.shares


@pytest.mark.parametrize("words", ["no, that is wrong", "Thanks, it works now"])
def test_what_a_person_says_of_the_work_moves_no_verdict_by_rules(words: str) -> None:
    before, after = (
        score_session(one, OfflineEvaluator()).verdict for one in (PLAIN, worked(words))
    )
    assert before == after

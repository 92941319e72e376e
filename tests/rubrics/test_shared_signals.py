"""A trouble is not offered where the verdict is made of what it reads."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from debrief.rubrics.avoiding import AVOIDED, BY_KEY, look_at
from debrief.scoring.offline_evaluator import OfflineEvaluator
from debrief.scoring.scorer import score_session
from debrief.scoring.verdict import SessionVerdict
from debrief.sessions.model import Intervention, Session
from tests.rubrics.scenario import edits
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


def verdict(one: Session) -> SessionVerdict | None:
    return score_session(one, OfflineEvaluator()).verdict


def test_who_stops_a_session_moves_the_verdict_so_it_is_not_offered_for_it() -> None:
    before, after = verdict(PLAIN), verdict(worked(NEXT, Intervention(kind="interruption")))
    assert before is not None
    assert after is not None
    assert before.verdict != after.verdict
    assert "excellence" in BY_KEY["avoids-interruption"].shares


def test_the_last_check_moves_the_verdict_so_failing_commands_are_not_offered_for_it() -> None:
    def checked(status: str, said: str) -> Session:
        check = call("Bash", {"command": "pytest"}, result=said, status=status, action="run")
        check = replace(check, command="pytest")
        return session("s1", turn(ASKED, says("", EDIT), says("", check), DONE))

    passed, failed = verdict(checked("ok", "3 passed")), verdict(checked("failed", "1 failed"))
    assert passed is not None
    assert failed is not None
    assert (passed.verdict, failed.verdict) == ("complete_verified", "partial")
    assert "excellence" in BY_KEY["avoids-failing-command"].shares


@pytest.mark.parametrize("words", ["no, that is wrong", "Thanks, it works now"])
def test_what_a_person_says_of_the_work_moves_no_verdict_by_rules(words: str) -> None:
    assert verdict(PLAIN) == verdict(worked(words))


def test_edits_that_miss_move_no_verdict_and_are_offered() -> None:
    def edited(missed: int) -> Session:
        return session("s1", turn(ASKED, says("", *edits(missed)), *WORK))

    assert verdict(edited(0)) == verdict(edited(4))
    levels = [look_at(edited(missed)).levels["avoids-missed-edit"] for missed in (0, 1, 4)]
    assert levels == [5, 2, 1]
    assert all(
        "excellence" not in trouble.shares for trouble in AVOIDED if trouble.kind == "missed_edit"
    )

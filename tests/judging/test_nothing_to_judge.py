"""Judges that have nothing to look at are not asked, and their row says why."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from debrief.judging.evaluation import evaluate_week
from debrief.judging.model import ChangeContext, Judge, Judgement
from debrief.sessions.model import Session
from tests.scoring.scenario import changing, session

CHANGE = Judge(name="change", weight=0.5, model="m", body="Is it short?")
CODE = Judge(name="code", weight=0.5, model="m", body="Is it reused?", needs="code")


class Counting:
    """Answers for every judge, and remembers which."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def judge(self, judge: Judge, context: ChangeContext, session: Session) -> Judgement:
        self.asked.append(judge.name)
        return Judgement(score=0.5, feedback="It is.")


def renamed(path: str) -> Session:
    """A session like ``changing``, whose edit is of another file."""
    given = changing()
    (message,) = given.turns[0].messages
    call = replace(message.calls[0], path=path)
    messages = (replace(message, calls=(call,)),)
    return replace(given, turns=(replace(given.turns[0], messages=messages),))


@pytest.mark.parametrize(
    ("given", "asked", "why"),
    [
        (renamed("cart.py"), ["change", "code"], {}),
        (renamed("README.md"), ["change"], {"code": "The session added no code."}),
        (session(), [], dict.fromkeys(["change", "code"], "The session changed nothing.")),
    ],
    ids=["code", "text", "nothing"],
)
def test_a_judge_is_asked_only_where_it_has_something_to_look_at(
    given: Session, asked: list[str], why: dict[str, str]
) -> None:
    counting = Counting()
    rows = list(evaluate_week([given], [CHANGE, CODE], counting, "f"))
    assert counting.asked == asked
    assert {row.judge: row.feedback for row in rows if row.status == "no_change"} == why
    assert all(row.score is None for row in rows if row.status == "no_change")

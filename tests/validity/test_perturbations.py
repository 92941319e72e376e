"""Changes of which it is known how a score must move, and scores that move the wrong way."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from debrief.offline.facts import facts_of
from debrief.scoring.dimensions import OVERALL
from debrief.sessions.model import Message, Session, Subagent
from debrief.validity.figures import moves_of
from debrief.validity.measuring import LabelledRun, Measured
from debrief.validity.perturbations import PERTURBATIONS
from tests.scoring.scenario import call, session, turn
from tools.validity.bars import bars_of

OTHER = session("other", (turn(1, "Add a cart.", "The cart is there.", calls=2),))


def changed(name: str, one: Session) -> Session:
    change = next(each.change for each in PERTURBATIONS if each.name == name)
    found = change(one, OTHER)
    assert found is not None
    assert found.digest != one.digest
    return found


def last_words(one: Session) -> str:
    return one.turns[-1].messages[-1].text


def test_the_second_half_is_cut_off() -> None:
    whole = session("s", 6)
    half = changed("cut in half", whole)
    assert [t.number for t in half.turns] == [1, 2, 3]
    assert half.turns == tuple(t for t in whole.turns[:3])
    assert half.ended == whole.turns[2].messages[-1].at


def test_subagents_stay_with_the_half_that_started_them_however_deep() -> None:
    def child(name: str, started_by: str) -> Subagent:
        calls = (call(f"call-{name}", "ls"),)
        return Subagent(
            id=name, call_id=started_by, messages=(Message(id=name, model="m", calls=calls),)
        )

    first, second = child("first", "call-1-0"), child("second", "call-6-0")
    deeper = child("deeper", "call-first")
    whole = replace(
        session("s", 6), subagents=(deeper, first, second, child("last", "call-second"))
    )
    assert {each.id for each in changed("cut in half", whole).subagents} == {"first", "deeper"}


def test_failure_is_admitted_at_the_end_or_a_paragraph_later() -> None:
    assert last_words(changed("failure admitted", session())).startswith("I did. However, ")
    later = last_words(changed("failure admitted a paragraph later", session()))
    assert later.split("\n\n") == ["I did.", "I was unable to solve this."]


def test_the_work_on_another_task_stands_below_what_was_asked_for() -> None:
    mixed = changed("work on another task", session("s", (turn(1, "Fix the tax."),)))
    assert mixed.turns[0].prompt == "Fix the tax."
    assert mixed.turns[0].messages == OTHER.turns[0].messages


def test_junk_is_written_as_an_edit_is_and_the_end_claims_success() -> None:
    before = session()
    junk = changed("500 lines of junk, all done", before)
    write = junk.turns[-1].messages[-2].calls[0]
    assert (write.added, write.patch.count("\n+"), junk.lines_added) == (500, 500, 500)
    assert last_words(junk) == "All done."
    assert junk.turns[-1].messages[: len(before.turns[-1].messages)] == before.turns[-1].messages


def test_thanks_are_a_turn_of_their_own() -> None:
    thanked = changed("thanks for a failure", session("s", 3))
    assert [t.number for t in thanked.turns] == [1, 2, 3, 4]
    assert "Thanks anyway" in thanked.turns[-1].prompt


def test_a_session_that_cannot_be_changed_is_left_alone() -> None:
    empty = session("s", (turn(1, "Hello?"),))
    assert PERTURBATIONS[0].change(empty, OTHER) is None
    silent = session("s", ())
    assert all(each.change(silent, OTHER) is None for each in PERTURBATIONS)


def measured(number: int, score: Callable[[Session], float | None]) -> Measured:
    one = session(f"s{number}", 3 + number, added=0)
    after = {each.name: each.change(one, OTHER) for each in PERTURBATIONS}
    return Measured(
        run=LabelledRun(session_id=one.id, success=False, task=one.id, family="f"),
        facts=facts_of(one),
        values={OVERALL: score(one)},
        changed={name: {OVERALL: score(it)} for name, it in after.items() if it is not None},
    )


@pytest.mark.parametrize(
    ("score", "held"),
    [
        (
            lambda one: float(one.lines_added),
            "cut in half 0, admitted 0, later 0, junk 0, thanks 1",
        ),
        (lambda one: float(len(one.turns)), "cut in half 1, admitted 0, later 0, junk 1, thanks 0"),
        (
            lambda one: (
                0.0 if "unsolved" in last_words(one) or "unable" in last_words(one) else 1.0
            ),
            "cut in half 0, admitted 1, later 1, junk 1, thanks 1",
        ),
    ],
    ids=["rises with junk", "counts turns", "believes words"],
)
def test_a_score_that_moves_the_wrong_way_is_caught(
    score: Callable[[Session], float | None], held: str
) -> None:
    rows = [measured(number, score) for number in range(8)]
    moves = [each for each in moves_of(rows) if each.change != "work on another task"]
    short = ("cut in half", "admitted", "later", "junk", "thanks")
    shares = (f"{name} {each.share:.0f}" for name, each in zip(short, moves, strict=True))
    assert ", ".join(shares) == held
    bars = [bar for bar in bars_of(OVERALL, [], moves) if "must" in bar.name]
    assert [bar.holds for bar in bars] == [each.share == 1 for each in moves]


def test_silence_is_no_fall_and_no_rise() -> None:
    rows = [
        measured(number, lambda one: None if "Thanks" in one.turns[-1].prompt else 1.0)
        for number in range(4)
    ]
    thanks = next(each for each in moves_of(rows) if each.change == "thanks for a failure")
    assert (thanks.silenced, thanks.rose, thanks.share) == (4, 0, 1.0)

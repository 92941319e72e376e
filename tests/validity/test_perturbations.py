"""Changes of which it is known how a score must move, and scores that move the wrong way."""

from __future__ import annotations

import random
from collections.abc import Callable
from statistics import fmean

import pytest
from msgspec import structs
from msgspec.structs import replace

from debrief.offline.facts import facts_of
from debrief.scoring.dimensions import OVERALL
from debrief.scoring.model import Chunk, Verdict
from debrief.sessions.model import Message, Session, Subagent
from debrief.validity.figures import moves_of
from debrief.validity.measuring import LabelledRun, Measured
from debrief.validity.perturbations import (
    PERTURBATIONS,
    WordScorer,
    chunk_flips,
    flips_table,
)
from tests.scoring.scenario import ScriptedScorer, call, refusing, session, turn, verdicts
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


WORDS = {
    "prompt": ("please go on", "no, that is wrong", "great, thanks", "add the tax", "still broken"),
    "text": (
        "All tests passed.",
        "It failed with an error.",
        "I read the file.",
        "Done, it works.",
    ),
    "command": ("make test", "rm -rf build", "git push --force", "cat notes.md", "rm -rf ~"),
    "result": ("12 passed", "3 failed, 9 passed", "Traceback: error", "ok", "done"),
}


def written(seed: int) -> Session:
    """A session of some length whose words are drawn."""
    drawn = random.Random(seed)

    words = {kind: drawn.sample(some, 3) for kind, some in WORDS.items()}

    def one(kind: str) -> str:
        return drawn.choice(words[kind])

    turns = []
    for number in range(1, drawn.randint(20, 60)):
        calls = tuple(
            call(f"c{number}.{place}", one("command"), one("result"))
            for place in range(drawn.randint(0, 8))
        )
        made = turn(number, one("prompt"), one("text"), calls=0)
        worked = Message(id=f"w{number}", model="some-model", calls=calls)
        ended = Message(id=f"e{number}", model="some-model", text=one("text"))
        turns.append(structs.replace(made, messages=(*made.messages, worked, ended)))
    return session(f"s{seed}", tuple(turns))


def test_a_scorer_that_sees_no_parts_moves_nothing() -> None:
    moved = list(chunk_flips([session(turns=20)], ScriptedScorer(), (100, 200)))
    assert {one.budget for one in moved} == {100, 200}
    assert all(one.moved == 0 and not one.flipped for one in moved)


def test_a_scorer_that_judges_by_position_moves_its_dimension_and_the_whole() -> None:
    def by_position(_session: Session, chunk: Chunk) -> tuple[Verdict, ...]:
        return verdicts(tool_mastery=1.0 if chunk.count == 1 else 0.0)

    moved = list(chunk_flips([session(turns=20)], ScriptedScorer(by_position), (100,)))
    far = {one.name: one.moved for one in moved if one.moved}
    assert far.keys() == {"tool_mastery", "overall_quality"}
    assert far["tool_mastery"] == -1
    assert "| 100 | 1 | 0.0% | 0.0% | 0.0% | 0.0% | -0.200 | 0.200 |" in flips_table(moved)


def test_short_and_failed_sessions_are_left_out() -> None:
    assert list(chunk_flips([session(turns=2)], ScriptedScorer())) == []
    assert list(chunk_flips([session(turns=20)], ScriptedScorer(refusing), (100,))) == []


def test_a_scorer_that_answers_by_the_words_it_sees_is_hardly_moved_by_a_cut() -> None:
    moved = list(chunk_flips(map(written, range(40)), WordScorer(), (1_000, 2_000, 4_000)))
    cuts = {(one.session_id, one.budget) for one in moved}
    flipped = {(one.session_id, one.budget) for one in moved if one.flipped}
    assert len(cuts) > 60
    assert len(flipped) <= 0.02 * len(cuts)
    whole = [one.moved for one in moved if one.name == OVERALL and one.moved is not None]
    assert abs(fmean(whole)) < 0.01
    values = {one.uncut for one in moved if one.name == "security_compliance"}
    assert len(values) > 1, "the words make no difference"

"""Chunk flips: what moves when a session is cut, against the same session uncut."""

from __future__ import annotations

import random
from statistics import fmean

from msgspec import structs

from debrief.scoring.model import Chunk, Verdict
from debrief.sessions.model import Message, Session
from debrief.validity.perturbations import Movement, WordScorer, chunk_flips, flips_table
from tests.scoring.scenario import ScriptedScorer, call, refusing, session, turn, verdicts

BUDGETS = (1_000, 2_000, 4_000)
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


def by_position(_session: Session, chunk: Chunk) -> tuple[Verdict, ...]:
    return verdicts(tool_mastery=1.0 if chunk.count == 1 else 0.0)


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
    moved = list(chunk_flips([session(turns=20)], ScriptedScorer(by_position), (100,)))
    far = {one.name: one.moved for one in moved if one.moved}
    assert far.keys() == {"tool_mastery", "overall_quality"}
    assert far["tool_mastery"] == -1
    assert "| 100 | 1 | 0.0% | 0.0% | 0.0% | 0.0% | -0.200 | 0.200 |" in flips_table(moved)


def test_short_and_failed_sessions_are_left_out() -> None:
    assert list(chunk_flips([session(turns=2)], ScriptedScorer())) == []
    assert list(chunk_flips([session(turns=20)], ScriptedScorer(refusing), (100,))) == []


def test_a_scorer_that_answers_by_the_words_it_sees_is_hardly_moved_by_a_cut() -> None:
    moved = list(chunk_flips(map(written, range(40)), WordScorer(), BUDGETS))
    cuts = {(one.session_id, one.budget) for one in moved}
    flipped = {(one.session_id, one.budget) for one in moved if one.flipped}
    assert len(cuts) > 60
    assert len(flipped) <= 0.02 * len(cuts)
    assert abs(mean_of(moved)) < 0.01
    values = {one.uncut for one in moved if one.name == "security_compliance"}
    assert len(values) > 1, "the words make no difference"


def mean_of(movements: list[Movement]) -> float:
    return fmean(
        one.moved for one in movements if one.name == "overall_quality" and one.moved is not None
    )

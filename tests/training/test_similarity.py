from __future__ import annotations

import random

import pytest

from debrief.sessions.model import Session
from debrief.training.similarity import Relatives, Sketch, likeness, sketch_of
from tests.training.scenario import says, session, turn

DRAW = random.Random(7)
WORDS = [f"word{number}" for number in range(5_000)]


def text(count: int) -> list[str]:
    return DRAW.choices(WORDS, k=count)


def of_text(id: str, words: list[str]) -> Sketch:
    return sketch_of(session(id, turn(" ".join(words), says())))


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_likeness_is_the_share_of_runs_in_common(shared: float) -> None:
    size = 4_000
    common = text(int(size * shared))
    one = of_text("one", common + text(size - len(common)))
    other = of_text("other", common + text(size - len(common)))
    true = shared / (2 - shared)
    assert likeness(one, other) == pytest.approx(true, abs=0.1)
    assert likeness(one, one) == 1.0


def with_history(id: str, *messages: str) -> Session:
    return session(id, turn(id, *(says(text, id=f"msg_{text}") for text in messages)))


def test_a_fork_is_found_by_the_history_that_it_copied() -> None:
    relatives = Relatives()
    relatives.add(sketch_of(with_history("origin", "a", *text(500))))
    found = relatives.of(sketch_of(with_history("fork", "a", *text(500))))
    assert [(one.session_id, one.shares_history) for one in found] == [("origin", True)]


def test_messages_that_share_only_their_number_make_no_relatives() -> None:
    relatives = Relatives()
    relatives.add(sketch_of(session("one", turn("a", says(" ".join(text(50)), id="1")))))
    assert (
        relatives.of(sketch_of(session("two", turn("b", says(" ".join(text(50)), id="1"))))) == []
    )


def test_a_near_copy_is_found_among_many() -> None:
    relatives = Relatives()
    documents = [text(300) for _ in range(200)]
    for number, words in enumerate(documents):
        relatives.add(of_text(f"s{number:03d}", words))
    for number, words in enumerate(documents):
        edited = [*words[:150], "changed", *words[150:]]
        assert [one.session_id for one in relatives.of(of_text("copy", edited))] == [
            f"s{number:03d}"
        ]


def test_sessions_of_a_word_or_none_can_be_compared() -> None:
    assert likeness(of_text("a", []), of_text("b", [])) == 1.0
    assert likeness(of_text("a", ["x"]), of_text("b", ["y"])) == 0.0

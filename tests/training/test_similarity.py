from __future__ import annotations

import random

import numpy as np
import pytest

from debrief.training.traits import message_marks, signature_of
from tests.training.scenario import says, session, turn

DRAW = random.Random(7)
WORDS = [f"word{number}" for number in range(5_000)]


def text(count: int) -> list[str]:
    return DRAW.choices(WORDS, k=count)


def likeness(one: bytes, other: bytes) -> float:
    """Return the estimated share of runs that two sessions have in common, 0 to 1."""
    return float((np.frombuffer(one, np.uint32) == np.frombuffer(other, np.uint32)).mean())


def of_text(words: list[str]) -> bytes:
    return signature_of(session("s", turn(" ".join(words), says())))


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_likeness_is_the_share_of_runs_in_common(shared: float) -> None:
    size = 4_000
    common = text(int(size * shared))
    one = of_text(common + text(size - len(common)))
    other = of_text(common + text(size - len(common)))
    assert likeness(one, other) == pytest.approx(shared / (2 - shared), abs=0.1)
    assert likeness(one, one) == 1.0


def test_results_do_not_make_two_sessions_alike() -> None:
    from tests.training.scenario import call

    same = " ".join(text(500))
    one, other = (
        session("s", turn(" ".join(text(60)), says("", call("Read", {"file_path": "a"}, same))))
        for _ in range(2)
    )
    assert likeness(signature_of(one), signature_of(other)) < 0.3


def test_sessions_of_a_word_or_none_can_be_compared() -> None:
    assert likeness(of_text([]), of_text([])) == 1.0
    assert likeness(of_text(["x"]), of_text(["y"])) < 0.1


def test_a_session_of_any_length_has_at_most_64_marks_and_shares_them_with_its_beginning() -> None:
    messages = [says(f"step {number}", id=f"msg_{number}") for number in range(1_000)]
    whole = message_marks(session("whole", turn("Go.", *messages)))
    fork = message_marks(session("fork", turn("Go.", *messages[:50])))
    assert len(whole) <= 64 * 8
    assert {whole[n : n + 8] for n in range(0, len(whole), 8)} & {
        fork[n : n + 8] for n in range(0, len(fork), 8)
    }

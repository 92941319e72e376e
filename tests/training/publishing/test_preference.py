from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Turn
from debrief.training.publishing.conversations import StoredLine
from debrief.training.publishing.preference import (
    SMALLEST_MARGIN,
    Entrant,
    pair_line,
    pairs_of,
    problems,
)
from debrief.training.samples import encode_line
from tests.training.scenario import judgement, line_of, says, scores, session, turn

GOOD = session("good", turn("Fix the loop.", says("Fixed, and the tests pass.")))
BAD = session("bad", turn("Fix the loop.", says("Somehow it does not work.")))


def line(of: object, quality: float, judged: float = 0.5, remark: str = "") -> StoredLine:
    assert isinstance(of, type(GOOD))
    rated = scores(of, quality)
    first = replace(rated.verdicts[0], value=quality, rationale=remark)
    rated = replace(rated, verdicts=(first, *rated.verdicts[1:]))
    return StoredLine(
        encode_line(line_of(of, scores=rated, judgements=[judgement(of, score=judged)]))
    )


def test_a_pair_says_by_how_much_and_why() -> None:
    made_line = pair_line(
        line(GOOD, 0.9, 0.8, "turn 1 ends with\npassing tests"),
        line(BAD, 0.3, 0.2, "nothing was checked"),
        same_prompt=True,
    )
    assert made_line is not None
    data, found = b"".join(made_line[0]), made_line[1]
    assert list(found) == list(problems(data)) == []
    made = json.loads(data)
    assert made["margin"] == 0.6
    assert made["reasons"][0] == "overall quality 0.90 against 0.30, scored by offline"
    assert (
        made["reasons"][1]
        == "judge reuse 0.80 against 0.20 (better: uses what is there; worse: uses what is there)"
    )
    assert (
        "better: turn 1 ends with passing tests; worse: nothing was checked" in made["reasons"][2]
    )
    assert made["chosen"][-1]["content"] == "Fixed, and the tests pass."
    assert (made["chosen_session"], made["rejected_session"]) == ("good", "bad")


def test_copies_that_were_scored_differently_are_no_pair() -> None:
    copy = session("copy", *GOOD.turns)
    assert pair_line(line(GOOD, 0.9), line(copy, 0.3), same_prompt=True) is None


def test_sessions_with_one_opening_are_known_by_it() -> None:
    one, other = line(GOOD, 0.9), line(BAD, 0.3)
    assert one.opening == other.opening != line(session("third"), 0.3).opening


@pytest.mark.parametrize("opening", [turn("", says("On it."), images=1), turn("", images=2)])
def test_openings_that_nobody_knows_are_not_the_same(opening: Turn) -> None:
    one, other = (session(name, opening, turn("Go.", says("Ok."))) for name in ("one", "other"))
    assert line(one, 0.9).opening != line(other, 0.3).opening


@pytest.mark.parametrize("better", [0.3, 0.2])
def test_a_pair_the_wrong_way_round_or_of_equals_is_refused(better: float) -> None:
    made = pair_line(line(GOOD, better), line(BAD, 0.3), same_prompt=True)
    assert made is not None
    _, found = made
    assert any("a margin of" in problem for problem in found)


ENTRANTS = st.lists(st.tuples(st.floats(0, 1), st.sampled_from(["a", "b", "c"])), max_size=30).map(
    lambda drawn: [
        Entrant(number=number, quality=quality, opening=opening)
        for number, (quality, opening) in enumerate(drawn)
    ]
)


@given(ENTRANTS)
def test_each_is_in_one_pair_at_most_and_the_better_one_is_chosen(entrants: list[Entrant]) -> None:
    pairs = pairs_of(entrants)
    used = [number for pair in pairs for number in (pair.chosen, pair.rejected)]
    assert len(used) == len(set(used))
    for pair in pairs:
        better, worse = entrants[pair.chosen], entrants[pair.rejected]
        assert better.quality - worse.quality >= SMALLEST_MARGIN
        assert pair.same_prompt == (better.opening == worse.opening) or not pair.same_prompt
    free = [one.quality for one in entrants if one.number not in used]
    assert not free or max(free) - min(free) < SMALLEST_MARGIN


def test_those_with_the_same_prompt_are_paired_first() -> None:
    pairs = pairs_of(
        [
            Entrant(number=0, quality=1.0, opening="a"),
            Entrant(number=1, quality=0.0, opening="b"),
            Entrant(number=2, quality=0.5, opening="a"),
            Entrant(number=3, quality=0.6, opening="b"),
        ]
    )
    assert [(pair.chosen, pair.rejected, pair.same_prompt) for pair in pairs] == [
        (0, 2, True),
        (3, 1, True),
    ]

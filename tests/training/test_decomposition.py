from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.scoring.model import SessionScores
from debrief.snapshots.model import SessionMetadataRow
from debrief.training.decomposition import Factor, WeeklyMove, moves_markdown, weekly_moves
from debrief.training.plots import moves_plot
from tests.training.scenario import MONDAY, metadata, scores, session

World = tuple[list[SessionScores], list[SessionMetadataRow]]
LEVELS = {"tasks": "task", "prompts": "prompt_fingerprint", "model": "model"}


def add(world: World, week: int, quality: float, count: int = 1, **levels: Any) -> None:
    scorer = levels.pop("scoring_fingerprint", "5c0e1d2a")
    for _ in range(count):
        of = session(f"s{len(world[0]):04d}", started=MONDAY + timedelta(weeks=week))
        world[0].append(scores(of, quality, scoring_fingerprint=scorer))
        world[1].append(metadata(of, **levels))


def part(move: WeeklyMove, factor: Factor) -> float:
    return next(one.value for one in move.parts if one.factor == factor)


@pytest.mark.parametrize(
    ("factor", "field"),
    [
        ("tasks", "task"),
        ("prompts", "prompt_fingerprint"),
        ("model", "model"),
        ("judges", "scoring_fingerprint"),
    ],
)
def test_a_move_that_came_with_one_factor_is_put_down_to_it(factor: Factor, field: str) -> None:
    world: World = ([], [])
    for week, good in ((0, 10), (1, 30)):
        add(world, week, 0.8, good, **{field: "good"})
        add(world, week, 0.4, 40 - good, **{field: "bad"})
    (move,) = weekly_moves(*world)
    assert move.moved == pytest.approx(0.2)
    assert part(move, factor) == pytest.approx(0.2, abs=0.03)
    assert move.rest == pytest.approx(0.0, abs=0.03)
    assert sum(abs(one.value) for one in move.parts) == pytest.approx(
        abs(part(move, factor)), abs=0.01
    )


def test_a_move_with_nothing_changed_is_how_the_sessions_went() -> None:
    world: World = ([], [])
    add(world, 0, 0.5, 10)
    add(world, 1, 0.7, 10)
    (move,) = weekly_moves(*world)
    assert move.rest == pytest.approx(0.2)
    assert [one.value for one in move.parts] == pytest.approx([0, 0, 0, 0])


def test_two_factors_that_changed_apart_are_told_apart() -> None:
    world: World = ([], [])
    for week, (prompt, model) in enumerate([("old", "small"), ("new", "small"), ("new", "large")]):
        add(world, week, 0.4 + 0.3 * (prompt == "new") - 0.1 * (model == "large"), 40,
            prompt_fingerprint=prompt, model=model)  # fmt: skip
    first, second = weekly_moves(*world)
    assert part(first, "prompts") == pytest.approx(0.3, abs=0.03)
    assert part(second, "model") == pytest.approx(-0.1, abs=0.03)
    assert (first.together, second.together) == ((), ())


def test_thousands_of_sessions_are_told_as_well_as_forty() -> None:
    world: World = ([], [])
    for week, good in ((0, 600), (1, 1_800)):
        add(world, week, 0.8, good, task="good")
        add(world, week, 0.4, 2_400 - good, task="bad")
    (move,) = weekly_moves(*world)
    assert move.moved == pytest.approx(0.2)
    assert part(move, "tasks") == pytest.approx(0.2, abs=0.001)
    assert move.rest == pytest.approx(0.0, abs=0.001)


def test_two_that_changed_together_are_said_to_have() -> None:
    world: World = ([], [])
    add(world, 0, 0.4, 10, prompt_fingerprint="old", model="small")
    add(world, 1, 0.8, 10, prompt_fingerprint="new", model="large")
    moves = weekly_moves(*world)
    assert moves[0].together == ("prompts and model",)
    assert "not to be told apart: 2026-01-12: prompts and model" in moves_markdown(moves)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 4), st.floats(0, 1), st.sampled_from("ab"), st.sampled_from("xyz")
        ),
        max_size=40,
    )
)
def test_the_parts_always_add_up(drawn: list[tuple[int, float, str, str]]) -> None:
    world: World = ([], [])
    for week, quality, prompt, task in drawn:
        add(world, week, quality, prompt_fingerprint=prompt, task=task)
    moves = weekly_moves(*world)
    assert len(moves) == max(0, len({week for week, *_ in drawn}) - 1)
    for move in moves:
        total = sum(one.value for one in move.parts) + move.rest
        assert total == pytest.approx(move.moved)
        assert all(one.low <= one.value <= one.high for one in move.parts)


def test_the_table_of_moves_is_narrow_however_much_changed() -> None:
    world: World = ([], [])
    add(world, 0, 0.4, 10, prompt_fingerprint="old", model="small", task="one")
    add(world, 2, 0.8, 10, prompt_fingerprint="new", model="large", task="two")
    add(world, 3, 0.7, 10, prompt_fingerprint="new", model="small", task="one")
    told = moves_markdown(weekly_moves(*world)).replace("\u00a0", " ")
    head, _, newest, oldest, *_ = told.splitlines()
    assert head == "| week | n | mean | moved | with |"
    assert newest.startswith("| 2026-01-26 | 10 | 0.70 | **-0.10** | ")
    assert oldest.startswith("| 2026-01-19 | 10 | 0.80 | **+0.40** | ")
    for factor in ("tasks +0.", "prompts +0.", "model +0.", "the sessions themselves +0."):
        assert factor in oldest
    assert "judges" not in oldest, "nothing is said of what did nothing"
    assert "of 2026-01-05, was 0.40 over 10 sessions" in told
    assert "lie between: 2026-01-19 after 2026-01-05." in told


def test_few_weeks_are_told_and_drawn_too() -> None:
    assert "nothing can have moved" in moves_markdown([])
    assert moves_plot([]).startswith(b"\x89PNG")
    world: World = ([], [])
    for week in range(12):
        add(world, week, week / 40, 2, prompt_fingerprint=str(week // 5))
    moves = weekly_moves(*world)
    assert moves_plot(moves) == moves_plot(moves)

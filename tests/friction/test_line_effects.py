"""Did a line help? Sessions of a made-up shop before and after a line came into its CLAUDE.md."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from statsmodels.stats.proportion import confint_proportions_2indep

from debrief.friction.line_effects import PromptedSession, effects_markdown, line_effects
from debrief.friction.schema import LineEffect
from debrief.stats import difference_of_shares
from tests.friction.test_advice import MONDAY, WRONG_RUNNER

OWN = f"# Shop\n\n- {WRONG_RUNNER.line}\n"
NONE = "# Shop\n\n- `bun dev` starts it.\n"


def sessions(*given: tuple[str, int]) -> list[PromptedSession]:
    """Return so many sessions with each prompt, one a day."""
    prompts = [prompt for prompt, count in given for _ in range(count)]
    return [
        PromptedSession(
            id=f"s-{n}", repository="sam/shop", started=MONDAY + timedelta(days=n), prompt=prompt
        )
        for n, prompt in enumerate(prompts)
    ]


def effect(given: list[PromptedSession], affected: set[int]) -> LineEffect:
    one = replace(WRONG_RUNNER, sessions=tuple(f"s-{n}" for n in affected))
    (found,) = line_effects([one], given, {})
    return found


def test_a_line_after_which_the_friction_is_gone_is_seen_to_have_helped() -> None:
    found = effect(sessions((NONE, 12), (OWN, 12)), set(range(9)))
    assert (found.affected_before, found.sessions_before) == (9, 12)
    assert (found.affected_after, found.sessions_after) == (0, 12)
    assert found.outcome == "fewer"
    assert found.since == MONDAY + timedelta(days=12)
    assert found.change == -0.75
    assert (
        "9 of 12 | 0 of 12 | -75% (-91% to -38%) | yes: fewer sessions have it"
        in effects_markdown([found])
    )


@pytest.mark.parametrize(
    ("before", "after", "affected", "outcome"),
    [
        (3, 2, {0, 1}, "too_early"),
        (17, 1, {17}, "too_early"),
        (60, 60, {*range(40), *range(60, 100)}, "no_change"),
        (20, 20, {0, *range(21, 36)}, "more"),
        (0, 9, {1, 2}, "always_there"),
        (12, 9, {*range(9), 18}, "back"),
        (12, 12, {*range(9), 18}, "fewer"),
    ],
)
def test_what_the_interval_does_not_decide_is_said_to_be_open(
    before: int, after: int, affected: set[int], outcome: str
) -> None:
    assert effect(sessions((NONE, before), (OWN, after)), affected).outcome == outcome


def test_of_a_reviews_friction_only_sessions_that_were_asked_count() -> None:
    one = replace(WRONG_RUNNER, by="some/model", sessions=("s-0", "s-1"))
    given = sessions((NONE, 8), (OWN, 8))
    assert line_effects([one], given, {}) == []
    asked = {one.id: {"s-2": True, "s-3": True, "s-9": False}}
    (found,) = line_effects([one], given, asked)
    assert (found.affected_before, found.sessions_before) == (2, 2)
    assert (found.affected_after, found.sessions_after) == (0, 1)


@pytest.mark.parametrize(
    ("existing", "line"),
    [
        ("", f"Our words.\n  <!-- friction {WRONG_RUNNER.id}: 2 times -->"),
        ("", f"* **{WRONG_RUNNER.line}**"),
        ("- Tests: bun.", "Tests: `bun`"),
    ],
)
def test_a_line_is_known_by_its_comment_its_words_and_the_one_it_mends(
    existing: str, line: str
) -> None:
    one = replace(WRONG_RUNNER, existing=existing)
    (found,) = line_effects([one], sessions((NONE, 2), (f"{NONE}\n{line}\n", 2)), {})
    assert (found.sessions_before, found.sessions_after) == (2, 2)


@pytest.mark.parametrize("line", ["Run `bun test` often.", "`pnpm test` fails."])
def test_a_line_that_only_mentions_its_words_is_about_no_friction(line: str) -> None:
    assert line_effects([WRONG_RUNNER], sessions((NONE, 2), (line, 2)), {}) == []


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_the_difference_of_two_shares_is_that_of_statsmodels(
    ours: int, theirs: int, data: st.DataObject
) -> None:
    first, second = data.draw(st.integers(0, ours)), data.draw(st.integers(0, theirs))
    found = difference_of_shares((first, ours), (second, theirs))
    low, high = confint_proportions_2indep(
        first, ours, second, theirs, method="newcomb", compare="diff"
    )
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-9)

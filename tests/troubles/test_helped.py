"""Did a line help? Sessions of a made-up shop before and after a line came into its CLAUDE.md."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep

from debrief.stats import difference_of_shares
from debrief.troubles.helped import PromptedSession, effects_markdown, line_effects
from debrief.troubles.model import LineEffect, Trouble
from debrief.troubles.remedies import line_for
from tests.troubles.lines import MONDAY, SHOP, WRONG_RUNNER, event, trouble

OWN = f"# Shop\n\n- {line_for(WRONG_RUNNER)}\n"
NONE = "# Shop\n\n- `bun dev` starts it.\n"


def sessions(*given: tuple[str, int]) -> list[PromptedSession]:
    """So many sessions with each prompt, one a day."""
    prompts = [prompt for prompt, count in given for _ in range(count)]
    return [
        PromptedSession(
            id=f"s-{n}", repository=SHOP, started=MONDAY + timedelta(days=n), prompt=prompt
        )
        for n, prompt in enumerate(prompts)
    ]


def effect(
    given: list[PromptedSession], troubled: set[int], one: Trouble = WRONG_RUNNER
) -> LineEffect:
    events = [event(one.kind, one.subject, f"s-{n}") for n in sorted(troubled) for _ in range(2)]
    (found,) = line_effects([one], events, given)
    return found


def test_a_line_after_which_the_trouble_is_gone_is_seen_to_have_helped() -> None:
    found = effect(sessions((NONE, 12), (OWN, 12)), set(range(9)))
    assert (found.troubled_before, found.sessions_before) == (9, 12)
    assert (found.troubled_after, found.sessions_after) == (0, 12)
    assert found.outcome == "fewer"
    assert found.since == MONDAY + timedelta(days=12)
    assert found.change == -0.75
    assert (
        "9 of 12 | 0 of 12 | -75% (-91% to -38%) | yes: fewer sessions have it"
        in effects_markdown([found])
    )


@pytest.mark.parametrize(
    ("before", "after", "troubled", "outcome"),
    [
        (3, 2, {0, 1}, "too_early"),
        (17, 1, {17}, "too_early"),
        (60, 60, {*range(40), *range(60, 100)}, "no_change"),
        (20, 20, {0, *range(21, 36)}, "more"),
        (0, 9, {1, 2}, "always_there"),
    ],
)
def test_what_the_interval_does_not_decide_is_said_to_be_open(
    before: int, after: int, troubled: set[int], outcome: str
) -> None:
    assert effect(sessions((NONE, before), (OWN, after)), troubled).outcome == outcome


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (WRONG_RUNNER, "* Always use **bun test** here."),
        (WRONG_RUNNER, f"Our words.\n  <!-- trouble {WRONG_RUNNER.id}: 2 times -->"),
        (trouble("missed_edit", file="src/Tab.tsx"), "1. Re-read Tab.tsx: a formatter rewrites it"),
        (trouble("missing_tool", command="rtk"), "- `rtk` is not for bun"),
        (
            trouble("correction", words="no, run `cargo fmt` first"),
            "Run `cargo fmt` before a commit.",
        ),
    ],
)
def test_a_line_that_a_person_wrote_is_known_by_what_it_names(one: Trouble, line: str) -> None:
    found = effect(sessions((NONE, 2), (f"{NONE}{line}\n", 2)), {0}, one)
    assert (found.sessions_before, found.sessions_after) == (2, 2)
    assert found.trouble_id == one.id


@pytest.mark.parametrize(
    ("one", "line"),
    [
        (WRONG_RUNNER, "Run `bun testing` and `pnpm install`."),
        (trouble("missed_edit", file="src/Tab.tsx"), "- `src/Tab.tsx`: the tab"),
        (trouble("repeated_read", command="git diff"), "Read `git diff` before a commit."),
        (trouble("missing_tool", command="make"), "Make sure that all is well; make it so."),
        (trouble("correction", words="that is wrong"), "Nothing that is wrong."),
    ],
)
def test_a_line_that_only_mentions_its_words_is_about_no_trouble(one: Trouble, line: str) -> None:
    assert line_effects([one], [], sessions((NONE, 2), (line, 2))) == []


def test_a_reworded_line_is_not_compared_with_sessions_that_had_the_old_one() -> None:
    given = sessions((NONE, 4), (OWN, 4), ("Use `bun test`.", 4))
    found = line_effects([WRONG_RUNNER], [], given)
    assert sorted((row.sessions_before, row.sessions_after) for row in found) == [(4, 4), (4, 4)]


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

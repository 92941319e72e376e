"""Habits of a person, seen in what they say."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.rubrics.habits.catalogue import HABITS, detect_habits, habit_of, nearest_habit
from debrief.rubrics.habits.dialogue import Dialogue, quote_at
from debrief.sessions.model import Intervention
from tests.rubrics.scenario import BAD, GOOD, session

STOP = Intervention(kind="interruption")


@pytest.mark.parametrize(
    ("habit", "prompts", "level"),
    [
        ("names-the-place", ("Make it faster please",), 1),
        ("names-the-place", ("Make it faster please", "start in app/main.py"), 2),
        ("names-the-place", ("Update the README please",), 3),
        ("names-the-place", ("Move `load` and `save` out",), 4),
        ("names-the-place", ("Move `load` out of app/main.py",), 5),
        ("names-the-place", ("The red/green and/or input/output question",), 1),
        ("states-the-result", ("Look at the menu",), 1),
        ("states-the-result", ("Look at this\n> it should close\n```\nmust be so\n```",), 1),
        ("states-the-result", ("Look at the menu", "It should close on escape"), 2),
        ("states-the-result", ("The menu should close on escape",), 3),
        ("states-the-result", ("The menu should close. It must keep its state.",), 4),
        ("states-the-result", ("It should close. It must keep state. Verify that it does.",), 5),
        ("sets-limits", ("Add a menu", "no, that is wrong"), 1),
        ("sets-limits", ("Add a menu", "hm", "keep the styles as they are"), 2),
        ("sets-limits", ("Add a menu", "keep the styles as they are"), 3),
        ("sets-limits", ("Add a menu without javascript",), 4),
        ("sets-limits", ("Add a menu without javascript. Don't touch the styles.",), 5),
        ("shows-the-failure", ("The build is broken",), 1),
        ("shows-the-failure", ("When I open the page after login the whole menu crashes",), 3),
        ("shows-the-failure", ("Fix this error:\n```\nTypeError: x is undefined at a.js\n```",), 4),
        ("shows-the-failure", ("I ran `make` and got this error: `TypeError: x is no list`",), 5),
        ("asks-for-proof", ("Add a menu",), 1),
        ("asks-for-proof", ("Add a menu", "please check that it works"), 2),
        ("asks-for-proof", ("Add a menu", "add a test for it"), 3),
        ("asks-for-proof", ("Add a menu and write tests",), 4),
        ("asks-for-proof", ("Add a menu. Run `pytest tests/test_menu.py` on it.",), 5),
        ("gives-examples", ("Add a menu",), 1),
        ("gives-examples", ("Add a menu", "for example with three items"), 2),
        ("gives-examples", ("Add a menu following the existing pattern",), 3),
        ("gives-examples", ("Add a menu, for example with three items",), 4),
        ("gives-examples", ("It should be sorted, for example 3 1 2 -> 1 2 3",), 5),
        ("plans-first", ("Add a menu",), 1),
        ("plans-first", ("Add a menu", "hm", "propose a plan"), 2),
        ("plans-first", ("Add a menu", "propose a plan"), 3),
        ("plans-first", ("Propose a plan for a menu",), 4),
        ("plans-first", ("Do this:\n1. the model\n2. the view\n3. the tests",), 5),
        ("explains-why", ("Add a menu",), 1),
        ("explains-why", ("Add a menu", "because the footer is full"), 2),
        ("explains-why", ("Add a menu, currently the links are in the footer",), 3),
        ("explains-why", ("Add a menu because people get lost",), 4),
        ("explains-why", ("Add a menu because people get lost: it is currently in the footer",), 5),
        ("says-it-up-front", ("Add a menu", "commit"), 5),
        ("says-it-up-front", ("Add a menu", "also add a search field"), 4),
        ("says-it-up-front", ("Add a menu", *["now add another one"] * 6), 1),
        ("needs-no-corrections", ("Add a menu", "thanks"), 5),
        ("needs-no-corrections", BAD, 1),
        ("lets-it-finish", GOOD, 5),
        ("avoids-vague-asks", GOOD, 5),
        ("avoids-vague-asks", ("fix it", *GOOD), 2),
        ("avoids-vague-asks", ("fix it",), 1),
        ("fits-the-first-prompt", ("fix",), 1),
        ("fits-the-first-prompt", GOOD, 5),
        ("fits-the-first-prompt", (" ".join(["word"] * 2000),), 1),
        ("needs-few-prompts", ("a",) * 2, 5),
        ("needs-few-prompts", ("a",) * 13, 1),
        ("closes-the-loop", ("Add a menu", "that is wrong, revert it"), 1),
        ("closes-the-loop", ("Add a menu", "where is it"), 2),
        ("closes-the-loop", ("Add a menu", "commit"), 3),
        ("closes-the-loop", ("Add a menu", "Perfect"), 4),
        ("closes-the-loop", ("Add a menu", "it works now, please commit and push"), 5),
    ],
)
def test_each_habit_is_placed_on_its_scale(
    habit: str, prompts: tuple[str, ...], level: int
) -> None:
    assert detect_habits(session(1, prompts))[habit].level == level


@pytest.mark.parametrize(
    ("reply", "level"),
    [
        ("whatever, you decide", 1),
        ("continue", 2),
        ("yes", 3),
        ("the second option please", 4),
        ("the second, because `menu.js` must stay small", 5),
    ],
)
def test_an_answer_to_the_agents_question_is_weighed(reply: str, level: int) -> None:
    asked = session(1, ("Add a menu", reply), replies=("Which of the two do you want?",))
    assert detect_habits(asked)["answers-questions"].level == level


@pytest.mark.parametrize(
    ("stop", "following", "level"),
    [
        (STOP, (), 1),
        (STOP, ("no no",), 2),
        (STOP, ("the colours look odd to me",), 3),
        (STOP, ("put the menu into the header instead",), 4),
        (Intervention(kind="rejection", text="use the flex layout in menu.css instead"), (), 5),
        (Intervention(kind="remark", text="no, use the flex layout in menu.css"), (), 5),
    ],
)
def test_the_words_at_a_stop_are_weighed(
    stop: Intervention, following: tuple[str, ...], level: int
) -> None:
    stopped = session(1, ("Add a menu", *following), stops={1: (stop,)})
    assert detect_habits(stopped)["says-what-instead"].level == level


@pytest.mark.parametrize(
    ("stops", "prompts", "level"), [(1, 5, 4), (1, 2, 3), (2, 4, 2), (3, 9, 1)]
)
def test_interruptions_are_counted(stops: int, prompts: int, level: int) -> None:
    stopped = session(1, ("Add one",) * prompts, stops={1: (STOP,) * stops})
    assert detect_habits(stopped)["lets-it-finish"].level == level


def test_a_session_that_turns_to_other_work_is_noticed() -> None:
    kept = session(
        1, ("Add a menu to the shop header", "Put the shop menu left of the logo in the header")
    )
    left = session(
        1, ("Add a menu to the shop header", "Translate the invoice letters into Polish language")
    )
    assert detect_habits(kept)["stays-on-topic"].level == 5
    assert detect_habits(left)["stays-on-topic"].level == 3


@pytest.mark.parametrize(
    "pasted",
    [
        "> somebody's words",
        "  at render (menu.js:3)",
        'File "menu.py", line 3',
        "12: x = 1",
        "let open = true;",
        "if (open) {",
    ],
)
def test_what_stands_before_and_after_a_pasted_line_is_the_persons_own(pasted: str) -> None:
    asked = f"The menu should close on escape.\n{pasted}\nIt must keep its state."
    assert detect_habits(session(1, (asked,)))["states-the-result"].level == 4


def test_a_habit_without_occasion_is_left_out() -> None:
    seen = detect_habits(session(1, ("Add a menu",)))
    assert not {
        "answers-questions",
        "says-what-instead",
        "stays-on-topic",
        "closes-the-loop",
    } & set(seen)
    assert detect_habits(session(1, ())) == {}


def test_german_words_are_understood() -> None:
    seen = detect_habits(
        session(1, ("Das Menü muss sich schließen, weil es derzeit ohne Test hängt",))
    )
    assert seen["states-the-result"].level >= 3
    assert seen["explains-why"].level == 5


PROMPTS = st.lists(
    st.text(max_size=120)
    | st.sampled_from([*GOOD, *BAD, "Why `x.py`?\n1. a\n2. b\n3. c", "no, stop", "yes", "commit"]),
    max_size=6,
)


@settings(max_examples=40)
@given(PROMPTS)
def test_every_look_is_on_the_scale_and_quotes_what_stands_there(prompts: list[str]) -> None:
    seen = detect_habits(session(1, prompts))
    for look in seen.values():
        assert look.level in {1, 2, 3, 4, 5}
        assert look.finding
        for sighting in look.sightings:
            assert sighting.quote in prompts[sighting.turn - 1]
            assert "\n" not in sighting.quote
    assert detect_habits(session(1, prompts)) == seen


@given(st.text(max_size=600), st.integers(0, 599))
def test_a_quote_is_one_short_line_of_the_text(text: str, place: int) -> None:
    quote = quote_at(text, min(place, len(text)))
    assert quote in text
    assert len(quote) <= 160


def test_each_habit_has_a_name_of_its_own_and_five_anchors() -> None:
    assert (
        len({habit.key for habit in HABITS}) == len({habit.name for habit in HABITS}) == len(HABITS)
    )
    for habit in HABITS:
        assert habit_of(habit.key) is habit
        assert len(set(habit.scale)) == 5
        assert nearest_habit(f"{habit.name} {habit.description}")[0] is habit
    assert habit_of("no-such-habit") is None


def test_a_prompt_of_megabytes_is_looked_at_in_no_time() -> None:
    vast = ("A" * 1_000_000, "x `y` " * 20_000, "x" + "\n" * 1_000_000 + "y", "<br>\n" * 20_000)
    dialogue = Dialogue(session(1, vast))
    assert [habit.key for habit in HABITS if habit.detect(dialogue)]

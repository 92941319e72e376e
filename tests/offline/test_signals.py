"""What a session shows of how it went, with its evidence by turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.offline.signals import Signals, read_signals
from tests.offline.scenario import Story

FAILING = "1 failed, 13 passed in 0.5s"
PASSING = "14 passed in 0.5s"
SHOP = "/home/ada/shop/a.py"
TASK = 'Run "all" tests of the uploader\nand report what fails'


def test_checks_are_told_from_first_to_last() -> None:
    maker = Story().turn("Add a retry").run("pytest", FAILING)
    maker.turn("go on").edit("a.py", "x = 1", "x = 2").run("pytest", PASSING).say("Done.")
    signals = maker.signals()
    first, last = signals.checks[0], signals.last_check("test")
    assert last is not None
    assert (first.turn, first.passed, first.failures, first.total) == (1, False, 1, 14)
    assert (last.turn, last.passed) == (2, True)
    assert signals.open_checks() == []
    assert signals.checked_after_last_edit


def test_a_check_left_failing_stays_open() -> None:
    signals = (
        Story().turn("x").run("pytest", PASSING).run("ruff check", "Found 2 errors.").signals()
    )
    assert [(run.kind, run.failures) for run in signals.open_checks()] == [("lint", 2)]


def test_an_edit_after_the_last_check_is_unchecked() -> None:
    signals = Story().turn("x").run("pytest", PASSING).edit("a.py", "x = 1", "x = 2").signals()
    assert not signals.checked_after_last_edit


SEEN: dict[str, tuple[str, Story, list[tuple[int, str]]]] = {
    "calls that failed, and neither checks nor empty searches": (
        "tool_errors",
        Story()
        .turn("x")
        .edit(SHOP, "x", "y", status="failed")
        .run("pytest", f"Exit code 1\n{FAILING}", "failed")
        .run("grep -rn retry .", "Exit code 1", "failed")
        .run("mkdir a", "Exit code 1\nmkdir: a: exists", "failed")
        .call("Read", "<tool_use_error>Sibling tool call errored</tool_use_error>", "failed"),
        [
            (1, "Edit shop/a.py: String to replace not found in file."),
            (1, "mkdir a: mkdir: a: exists"),
        ],
    ),
    "going back to a place, and not to another": (
        "repeated_edits",
        Story()
        .turn("x")
        .edit("a.py", "total = 0", "total = compute(1)", line=10)
        .edit("a.py", "other = 0", "other = compute(2)", line=90)
        .edit("b.py", "total = compute(1)", "total = compute(3)", line=10)
        .turn("y")
        .edit("a.py", "total = compute(1)", "total = compute(4)", line=40),
        [(2, "a.py line 40, written in turn 1")],
    ),
    "a file read again unchanged": (
        "rereads",
        Story()
        .turn("x")
        .read(SHOP)
        .read(SHOP, offset=50, limit=20)
        .read(SHOP)
        .edit(SHOP, "x = 1", "x = 2")
        .read(SHOP),
        [(1, "shop/a.py")],
    ),
    "an edit without a look, and not one of a new file": (
        "blind_edits",
        Story()
        .turn("x")
        .write("new.py", "x = 1")
        .edit("new.py", "x = 1", "x = 2")
        .read("seen.py")
        .edit("seen.py", "x = 1", "x = 2")
        .edit("blind.py", "x = 1", "x = 2"),
        [(1, "blind.py")],
    ),
}


def seen(sightings: Any) -> list[tuple[int, str]]:
    return [(sighting.turn, sighting.quote) for sighting in sightings]


@pytest.mark.parametrize("name", SEEN)
def test_what_is_noted_is_told_with_its_turn(name: str) -> None:
    field, story, expected = SEEN[name]
    assert seen(getattr(story.signals(), field)) == expected


def test_a_subagent_may_read_what_the_agent_read() -> None:
    maker = Story().turn("x").read("a.py").call("Task", "found", prompt=TASK)
    signals = maker.subagent(TASK, maker.make("Read", "x", file_path="a.py")).signals()
    assert (signals.rereads, signals.subagents, signals.reads) == ((), 1, 2)


def test_subagents_belong_to_the_turn_that_started_them() -> None:
    maker = Story().turn("x").say("ok").turn("y").call("Task", "found", prompt=TASK).turn("z")
    session = maker.subagent(TASK, maker.make("Bash", FAILING, command="pytest")).session()
    assert [run.turn for run in read_signals(session).checks] == [2]
    assert read_signals(session, [3]).checks == ()


def test_what_the_person_did_is_told_by_turn() -> None:
    maker = Story().turn("no, this first prompt corrects nobody").say("ok")
    maker.deed("rejection", "no, use the existing client")
    maker.turn("you forgot the header").say("ok").deed("interruption")
    maker.turn("thanks, perfect").say("welcome")
    maker.deed("answer", "the second one").deed("remark", "no, not in that file")
    signals = maker.signals()
    assert seen(signals.corrections) == [
        (1, "no, use the existing client"),
        (2, "you forgot the header"),
        (3, "no, not in that file"),
    ]
    assert seen(signals.rejections) == [(1, "no, use the existing client")]
    assert [s.turn for s in signals.interruptions] == [2]
    assert [s.turn for s in signals.approvals] == [3]
    assert seen(signals.answers) == [(3, "the second one")]


def test_a_refused_danger_never_ran() -> None:
    maker = Story().turn("x").run("git push --force", "refused", "rejected")
    hazards = maker.run("git reset --hard").signals().hazards
    assert [(h.kind, h.refused) for h in hazards] == [("destructive", True), ("destructive", False)]


def test_the_end_is_open_when_a_call_has_no_answer() -> None:
    waiting = Story().turn("x").call("Bash", None, "unanswered", command="sleep 9").signals()
    assert not waiting.ended_answered
    assert [s.quote for s in waiting.unanswered] == ["sleep 9"]
    answered = Story().turn("x").say("All done.").signals()
    assert answered.ended_answered
    assert answered.closing is not None
    assert seen([answered.closing]) == [(1, "All done.")]
    stopped = Story().turn("x").say("Working").deed("interruption").signals()
    assert (stopped.ended_answered, stopped.ended_interrupted) == (False, True)


def test_thanks_need_no_answer_and_a_commit_hook_ends_a_transcript() -> None:
    assert Story().turn("x").say("Done.").turn("thanks!").signals().ended_answered
    assert not Story().turn("x").say("Done.").turn("and the other one?").signals().ended_answered
    command = "git add -A && git commit -m 'Retry'"
    commit = Story().turn("x").call("Bash", None, "unanswered", command=command)
    assert commit.signals().ended_answered


def test_a_session_without_anything_has_no_ratios() -> None:
    signals = Story().signals()
    assert signals.turns == signals.calls == signals.tokens == 0
    assert signals.growth_per_1000_tokens is None
    assert signals.calls_per_turn is None
    assert signals.last_check() is None
    assert not signals.ended_answered


def test_a_preamble_is_looked_at_and_not_counted_as_a_turn() -> None:
    signals = Story().turn("", number=0).run("pytest", FAILING).turn("x", number=1).signals()
    assert signals.turns == 1
    assert [run.turn for run in signals.checks] == [0]


def test_only_the_turns_asked_for_are_looked_at() -> None:
    maker = Story().turn("x").run("pytest", FAILING).turn("y", compacted=True).run("ls")
    part = read_signals(maker.session(), {2})
    assert (part.checks, part.searches) == ((), 1)
    assert seen(part.compactions) == [(2, "conversation compacted")]


texts = st.text(max_size=60)
deeds = st.sampled_from(["say", "run", "read", "edit", "write", "interruption", "turn"])


@settings(max_examples=40)
@given(st.lists(st.tuples(deeds, texts, texts), max_size=12))
def test_any_session_can_be_read_and_is_read_the_same_twice(
    steps: list[tuple[str, str, str]],
) -> None:
    maker = Story().turn("first")
    doing: dict[str, Callable[[str, str], Story]] = {
        "say": lambda one, two: maker.say(one),
        "turn": lambda one, two: maker.turn(one),
        "run": maker.run,
        "read": maker.read,
        "edit": lambda one, two: maker.edit(one or "a", two, one),
        "write": lambda one, two: maker.write(one or "a", two),
        "interruption": lambda one, two: maker.deed("interruption", one),
    }
    for deed, one, two in steps:
        doing[deed](one, two)
    session = maker.session()
    signals = read_signals(session)
    assert signals == read_signals(session)
    assert isinstance(signals, Signals)
    numbers = {turn.number for turn in session.turns}
    for name in Signals.__struct_fields__:
        value = getattr(signals, name)
        if isinstance(value, tuple):
            assert {item.turn for item in value} <= numbers
    halves = [read_signals(session, [n]) for n in numbers]
    assert sum(half.calls for half in halves) == signals.calls
    assert sum(half.growth for half in halves) == signals.growth
    assert msgspec.json.encode(signals)

"""What a session shows of how it went, with its evidence by turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from debrief.offline.signals import Signals, read_signals

MakeStory = Callable[[], Any]
FAILING = "1 failed, 13 passed in 0.5s"
PASSING = "14 passed in 0.5s"


def seen(sightings: Any) -> list[tuple[int, str]]:
    return [(sighting.turn, sighting.quote) for sighting in sightings]


def test_checks_are_told_from_first_to_last(story: MakeStory) -> None:
    session = (
        story()
        .turn("Add a retry")
        .run("pytest", FAILING)
        .turn("go on")
        .edit("a.py", "x = 1", "x = 2")
        .run("pytest", PASSING)
        .say("Done.")
        .session()
    )
    signals = read_signals(session)
    first, last = signals.checks[0], signals.last_check("test")
    assert last is not None
    assert (first.turn, first.passed, first.failures, first.total) == (1, False, 1, 14)
    assert (last.turn, last.passed) == (2, True)
    assert signals.open_checks() == []
    assert signals.checked_after_last_edit


def test_a_check_left_failing_stays_open(story: MakeStory) -> None:
    session = (
        story().turn("x").run("pytest", PASSING).run("ruff check", "Found 2 errors.").session()
    )
    signals = read_signals(session)
    assert [(run.kind, run.failures) for run in signals.open_checks()] == [("lint", 2)]


def test_an_edit_after_the_last_check_is_unchecked(story: MakeStory) -> None:
    session = story().turn("x").run("pytest", PASSING).edit("a.py", "x = 1", "x = 2").session()
    assert not read_signals(session).checked_after_last_edit


def test_tool_errors_are_calls_that_failed_and_not_checks_or_empty_searches(
    story: MakeStory,
) -> None:
    session = (
        story()
        .turn("x")
        .edit("/home/ada/shop/a.py", "x", "y", status="failed")
        .run("pytest", f"Exit code 1\n{FAILING}", "failed")
        .run("grep -rn retry .", "Exit code 1", "failed")
        .run("mkdir a", "Exit code 1\nmkdir: a: exists", "failed")
        .call("Read", "<tool_use_error>Sibling tool call errored</tool_use_error>", "failed")
        .session()
    )
    assert seen(read_signals(session).tool_errors) == [
        (1, "Edit shop/a.py: String to replace not found in file."),
        (1, "mkdir a: mkdir: a: exists"),
    ]


def test_going_back_to_a_place_is_a_repeated_edit_and_another_place_is_not(
    story: MakeStory,
) -> None:
    session = (
        story()
        .turn("x")
        .edit("a.py", "total = 0", "total = compute(1)", line=10)
        .edit("a.py", "other = 0", "other = compute(2)", line=90)
        .edit("b.py", "total = compute(1)", "total = compute(3)", line=10)
        .turn("y")
        .edit("a.py", "total = compute(1)", "total = compute(4)", line=40)
        .session()
    )
    assert seen(read_signals(session).repeated_edits) == [(2, "a.py line 40, written in turn 1")]


def test_a_file_read_again_unchanged_is_a_reread(story: MakeStory) -> None:
    session = (
        story()
        .turn("x")
        .read("/home/ada/shop/a.py")
        .read("/home/ada/shop/a.py", offset=50, limit=20)
        .read("/home/ada/shop/a.py")
        .edit("/home/ada/shop/a.py", "x = 1", "x = 2")
        .read("/home/ada/shop/a.py")
        .session()
    )
    assert seen(read_signals(session).rereads) == [(1, "shop/a.py")]


def test_a_subagent_may_read_what_the_agent_read(story: MakeStory) -> None:
    maker = story()
    reading = maker.make("Read", "x", file_path="a.py")
    session = (
        maker.turn("x")
        .read("a.py")
        .call("Task", "found", prompt="Look for the retry code in the uploader")
        .subagent("Look for the retry code in the uploader", reading)
        .session()
    )
    signals = read_signals(session)
    assert signals.rereads == ()
    assert signals.subagents == 1
    assert signals.reads == 2


def test_subagents_belong_to_the_turn_that_started_them(story: MakeStory) -> None:
    maker = story()
    command = maker.make("Bash", FAILING, command="pytest")
    task = 'Run "all" tests of the uploader\nand report what fails'
    session = (
        maker.turn("x")
        .say("ok")
        .turn("y")
        .call("Task", "found", prompt=task)
        .turn("z")
        .subagent(task, command)
        .session()
    )
    assert [run.turn for run in read_signals(session).checks] == [2]
    assert read_signals(session, [3]).checks == ()


def test_an_edit_without_a_look_is_blind_and_a_new_file_is_not(story: MakeStory) -> None:
    session = (
        story()
        .turn("x")
        .write("new.py", "x = 1")
        .edit("new.py", "x = 1", "x = 2")
        .read("seen.py")
        .edit("seen.py", "x = 1", "x = 2")
        .edit("blind.py", "x = 1", "x = 2")
        .session()
    )
    assert seen(read_signals(session).blind_edits) == [(1, "blind.py")]


def test_what_the_person_did_is_told_by_turn(story: MakeStory) -> None:
    session = (
        story()
        .turn("no, this first prompt corrects nobody")
        .say("ok")
        .deed("rejection", "no, use the existing client")
        .turn("you forgot the header")
        .say("ok")
        .deed("interruption")
        .turn("thanks, perfect")
        .say("welcome")
        .deed("answer", "the second one")
        .deed("remark", "no, not in that file")
        .session()
    )
    signals = read_signals(session)
    assert seen(signals.corrections) == [
        (1, "no, use the existing client"),
        (2, "you forgot the header"),
        (3, "no, not in that file"),
    ]
    assert seen(signals.rejections) == [(1, "no, use the existing client")]
    assert [s.turn for s in signals.interruptions] == [2]
    assert [s.turn for s in signals.approvals] == [3]
    assert seen(signals.answers) == [(3, "the second one")]


def test_a_refused_danger_never_ran(story: MakeStory) -> None:
    session = (
        story()
        .turn("x")
        .run("git push --force", "refused", "rejected")
        .run("git reset --hard", "")
        .session()
    )
    signals = read_signals(session)
    assert [(h.kind, h.refused) for h in signals.hazards] == [
        ("destructive", True),
        ("destructive", False),
    ]


def test_the_end_is_open_when_a_call_has_no_answer(story: MakeStory) -> None:
    open_end = story().turn("x").call("Bash", None, "unanswered", command="sleep 9").session()
    assert not read_signals(open_end).ended_answered
    assert [s.quote for s in read_signals(open_end).unanswered] == ["sleep 9"]
    answered = story().turn("x").say("All done.").session()
    assert read_signals(answered).ended_answered
    closing = read_signals(answered).closing
    assert closing is not None
    assert (closing.turn, closing.quote) == (1, "All done.")
    stopped = story().turn("x").say("Working").deed("interruption").session()
    assert not read_signals(stopped).ended_answered
    assert read_signals(stopped).ended_interrupted


def test_thanks_need_no_answer_and_a_commit_hook_ends_a_transcript(story: MakeStory) -> None:
    thanks = story().turn("x").say("Done.").turn("thanks!").session()
    assert read_signals(thanks).ended_answered
    silence = story().turn("x").say("Done.").turn("and the other one?").session()
    assert not read_signals(silence).ended_answered
    command = "git add -A && git commit -m 'Retry'"
    commit = story().turn("x").call("Bash", None, "unanswered", command=command).session()
    assert read_signals(commit).ended_answered


def test_growth_is_told_per_token_and_turn(story: MakeStory) -> None:
    session = (
        story()
        .turn("x")
        .say("", tokens=500)
        .edit("a.py", "x = 1\ny = 1", "x = 2\ny = 2\nz = 2")
        .turn("y")
        .session()
    )
    signals = read_signals(session)
    assert (signals.lines_added, signals.lines_removed, signals.growth) == (3, 2, 5)
    assert signals.tokens == 1200
    assert signals.growth_per_1000_tokens == 5 / 1.2
    assert signals.calls_per_turn == 0.5


def test_a_session_without_anything_has_no_ratios(story: MakeStory) -> None:
    signals = read_signals(story().session())
    assert signals.turns == signals.calls == signals.tokens == 0
    assert signals.growth_per_1000_tokens is None
    assert signals.calls_per_turn is None
    assert signals.last_check() is None
    assert not signals.ended_answered


def test_a_preamble_is_looked_at_and_not_counted_as_a_turn(story: MakeStory) -> None:
    session = story().turn("", number=0).run("pytest", FAILING).turn("x", number=1).session()
    signals = read_signals(session)
    assert signals.turns == 1
    assert [run.turn for run in signals.checks] == [0]


def test_only_the_turns_asked_for_are_looked_at(story: MakeStory) -> None:
    session = story().turn("x").run("pytest", FAILING).turn("y", compacted=True).run("ls").session()
    part = read_signals(session, {2})
    assert part.checks == ()
    assert part.searches == 1
    assert seen(part.compactions) == [(2, "conversation compacted")]


def test_several_calls_at_once_are_noticed(story: MakeStory) -> None:
    maker = story()
    two = (maker.make("Read", "x", file_path="a"), maker.make("Read", "x", file_path="b"))
    assert read_signals(maker.turn("x").say("", *two).session()).parallel_messages == 1


texts = st.text(max_size=60)
deeds = st.sampled_from(["say", "run", "read", "edit", "write", "interruption", "turn"])


@given(st.lists(st.tuples(deeds, texts, texts), max_size=12))
def test_any_session_can_be_read_and_is_read_the_same_twice(
    story: MakeStory, steps: list[tuple[str, str, str]]
) -> None:
    maker = story().turn("first")
    for deed, one, two in steps:
        if deed == "say":
            maker.say(one)
        elif deed == "turn":
            maker.turn(one)
        elif deed == "run":
            maker.run(one, two)
        elif deed == "read":
            maker.read(one, two)
        elif deed == "edit":
            maker.edit(one or "a", two, one)
        elif deed == "write":
            maker.write(one or "a", two)
        else:
            maker.deed(deed, one)
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

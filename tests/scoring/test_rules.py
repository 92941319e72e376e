"""The verdict of small sessions: each rule by a story, and what must never move one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from debrief.signals.extract import extract_signals
from debrief.scoring.rules import verdict_of
from debrief.scoring.verdict import SHOWN, SessionVerdict, basis_text, basis_with_turns
from debrief.sessions.model import Evidence
from tests.signals.scenario import Story, steps, story_of

RED, GREEN = "1 failed, 4 passed in 0.2s", "5 passed in 0.2s"


def fixing() -> Story:
    return Story().turn("Fix the retry of the uploader").edit("app.py", "x = 1", "x = 2")


def told(story: Story, outcome: tuple[bool, str] | None = None) -> SessionVerdict:
    return verdict_of(story.facts(), outcome)


def pair(story: Story) -> tuple[str, str]:
    verdict = told(story)
    return verdict.verdict, verdict.basis


def test_a_check_that_passed_after_the_last_edit_verifies() -> None:
    verdict = told(fixing().run("pytest -q", GREEN).say("It waits now."))
    assert (verdict.verdict, verdict.basis, verdict.check) == ("complete_verified", "check", "pytest")
    assert verdict.evidence[0].quote == GREEN
    assert basis_text(verdict) == "The last check passed: pytest."


@pytest.mark.parametrize(
    ("turns", "where"),
    [
        ([], "."),
        ([4, 4], " (turn 4: “late”)."),
        ([2, 1, 5], " (turns 2, 1, 5: “late”)."),
        ([1, 2, 3, 4], " (turns 1, 2, 3 and 1 more: “late”)."),
    ],
)
def test_a_verdict_is_shown_with_the_turns_that_tell_it(turns: list[int], where: str) -> None:
    evidence = tuple(Evidence(turn, quote="late") for turn in turns)
    verdict = SessionVerdict(verdict="partial", basis="open_end", evidence=evidence)
    assert basis_with_turns(verdict) == f"It breaks off without a closing answer{where}"


def test_a_check_that_failed_leaves_it_in_part() -> None:
    assert pair(fixing().run("pytest -q", RED).say("It waits now.")) == ("partial", "check")


def test_a_test_seen_failing_before_stands_beside_the_one_that_passed() -> None:
    story = Story().turn("Fix it").run("pytest", RED, "failed").edit("a.py", "x = 1", "x = 2")
    verdict = told(story.run("pytest", GREEN).say("Fixed."))
    assert [place.call for place in verdict.evidence] == ["c3", "c1"]


def test_the_broken_thing_run_again_is_a_check() -> None:
    story = Story().turn("Fix it").run("mytool sync --all", "Error: no host", "failed")
    story.edit("tool/sync.py", "x = 1", "x = 2").run("mytool sync --all", "synced 4 files")
    assert pair(story.say("It syncs.")) == ("complete_verified", "check")


def test_a_command_that_publishes_and_was_refused_before_is_no_check() -> None:
    story = Story().turn("Push it").run("git push origin main", "rejected", "failed")
    story.edit("a.py", "x = 1", "x = 2").run("git push origin main", "main -> main")
    assert pair(story.say("Pushed.")) == ("complete_unverified", "no_check")


@pytest.mark.parametrize(
    ("path", "command", "output"),
    [
        ("README.md", "pytest -q", "1319 passed in 9s"),
        ("app.py", "tsc --noEmit", ""),
        ("app.py", "cargo check", "Finished dev"),
        ("web/cart.ts", "go test ./...", "ok  shop/cart 0.1s"),
        ("cart.go", "go vet ./...", ""),
        ("app.py", "echo '5 passed'", "5 passed"),
        ("logo.svg", "pytest -q", GREEN),
    ],
)
def test_a_check_that_could_not_fail_because_of_the_change_verifies_nothing(
    path: str, command: str, output: str
) -> None:
    story = Story().turn("Change it").edit(path, "x = 1", "x = 2").run(command, output)
    assert told(story.say("Changed.")).verdict == "complete_unverified"


def test_an_edit_after_the_check_takes_it_away() -> None:
    story = fixing().run("pytest -q", GREEN).edit("app.py", "x = 2", "x = 3").say("And tidied.")
    assert pair(story) == ("complete_unverified", "no_check")


def test_an_edit_after_a_check_that_failed_does_not_make_it_done() -> None:
    story = fixing().run("pytest -q", RED, "failed").edit("app.py", "x = 2", "x = 3")
    assert pair(story.say("Fixed.")) == ("partial", "check")
    assert pair(fixing().run("make && mise run test", "boom", "failed").say("Fixed.")) == (
        "partial",
        "check",
    )


def test_a_note_after_the_check_does_not() -> None:
    story = fixing().run("pytest -q", GREEN).edit("CHANGELOG.md", "a", "b").say("Done.")
    assert pair(story) == ("complete_verified", "check")


def test_an_exit_status_behind_a_pipe_does_not_tell() -> None:
    story = fixing().run("pytest -q | tail -1", "see the log").say("Done.")
    assert told(story).verdict == "complete_unverified"
    assert told(fixing().run("pytest -q | tail -1", GREEN).say("Done.")).verdict == "complete_verified"


def test_what_breaks_off_after_a_change_is_done_in_part_and_before_one_cannot_be_told() -> None:
    assert pair(fixing().run("pytest -q", GREEN)) == ("partial", "open_end")
    assert pair(fixing().say("Now I'll").deed("interruption")) == ("partial", "stopped")
    looking = Story().turn("Fix it").run("ls -la src", "a.py").run("cat src/a.py", "x = 1")
    assert pair(looking) == ("undetermined", "open_end")


def test_a_commit_without_an_answer_keeps_the_verdict_of_the_work_and_is_marked() -> None:
    story = fixing().run("pytest -q", GREEN)
    story.call("Bash", None, "unanswered", command="git commit -am 'Retry'")
    verdict = told(story)
    assert (verdict.verdict, verdict.unanswered) == ("complete_verified", True)
    assert basis_text(verdict).endswith("The last request has no answer.")


def test_questions_and_greetings_cannot_be_told() -> None:
    asked = Story().turn("What does it do?").read("a.py").read("b.py").say("It adds numbers.")
    assert pair(asked) == ("undetermined", "no_change")
    assert pair(Story().turn("hello").say("Hello!")) == ("undetermined", "no_work")


@pytest.mark.parametrize("story", [fixing().run("pytest -q", RED), Story().turn("hi").say("Hi")])
def test_an_outcome_decides_before_all_else(story: Story) -> None:
    done, reverted = told(story, (True, "pull-request")), told(story, (False, "revert"))
    assert (done.verdict, done.basis, done.source) == ("complete_verified", "outcome", "pull-request")
    assert (reverted.verdict, basis_text(reverted)) == (
        "failed",
        "Its commit was reverted.",
    )


@pytest.mark.parametrize(
    "words",
    [
        "All done! Everything works perfectly. ✅ 100 % of the tests pass.",
        "I could not get it to work, sorry. It is not finished.",
        "Thanks!",
    ],
)
def test_no_word_of_the_agent_moves_a_verdict(words: str) -> None:
    for make in (fixing, lambda: fixing().run("pytest", RED), lambda: Story().turn("x")):
        assert pair(make().say(words)) == pair(make().say("The uploader waits a second now."))


def test_junk_at_the_end_raises_nothing() -> None:
    plain, padded = fixing().run("pytest", RED), fixing().run("pytest", RED)
    for number in range(50):
        padded.run(f"echo line {number}", f"line {number}")
    assert pair(plain.say("Done.")) == pair(padded.say("All done."))


@settings(deadline=None, max_examples=20)
@given(steps)
def test_any_session_has_one_verdict_with_a_ground(given_steps: list[tuple[str, str]]) -> None:
    verdict = verdict_of(extract_signals(story_of(given_steps).session()))
    assert verdict.shown == SHOWN[verdict.verdict]
    assert basis_text(verdict).endswith(".")
    assert verdict.verdict != "complete_verified" or verdict.basis == "check"
    assert verdict.verdict != "failed"

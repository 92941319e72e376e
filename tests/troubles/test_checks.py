"""Checks that fail: behind a pipe, before anything was changed, by a diff or a list of tests."""

from __future__ import annotations

from debrief.troubles.check_findings import found_by_check
from tests.signals.scenario import Story
from tests.troubles.scenario import events, told

RED = "--- FAIL: TestRetry (0.00s)\n    want 3, got 1\nFAIL"
GREEN = "ok shop 0.1s"


def subjects(story: Story) -> list[str]:
    return [event.subject for event in events(story) if event.kind != "blind_check"]


def test_a_check_that_prints_its_failure_into_another_program_failed() -> None:
    untyped = "src/a.ts(3,5): error TS2304: Cannot find name 'x'.\nFound 1 error."
    story = Story().turn("Type it").run("npx tsc --noEmit 2>&1 | tail -20", untyped)
    assert subjects(story) == ["npx tsc: TS2304: Cannot find name 'x'."]
    fine = Story().turn("Type it").run("npx tsc --noEmit 2>&1 | tail -20", "Found 0 errors.")
    assert subjects(fine) == []
    unclear = (
        Story().turn("Go").run("go build ./... | head; ls", "error: x\nls: cannot open: denied")
    )
    assert subjects(unclear) == []
    shown = Story().turn("Look").run("cat ci.log | tail -20", untyped)
    assert subjects(shown) == []


def test_a_test_that_fails_before_anything_was_changed_is_not_the_agents_work() -> None:
    there = Story().turn("Look").run("go test ./...", RED, "failed").edit("a.go", "a", "b")
    assert subjects(there.run("go test ./...", GREEN)) == ["TestRetry: the test failed"]
    first = Story().turn("Retry").edit("a_test.go", "", "x").run("go test ./...", RED, "failed")
    assert subjects(first.edit("a.go", "a", "b").run("go test ./...", GREEN)) == []
    by_hand = Story().turn("Retry").run("cat > a_test.go <<'E'\nx\nE").run("go test ./...", RED)
    assert subjects(by_hand) == []


def test_a_test_that_passes_the_next_time_with_nothing_changed_is_unsteady() -> None:
    story = Story().turn("Retry").edit("a.go", "a", "b").run("go test ./...", RED, "failed")
    assert subjects(story.run("go test ./...", GREEN)) == ["TestRetry: the test failed"]

    def again(*later: str) -> list[str]:
        story = Story().turn("Retry").edit("a.go", "a", "b").run("go test ./...", RED, "failed")
        for command in later:
            story.run(command, GREEN)
        return subjects(story)

    assert again("go test ./shop") == []  # other tests
    assert again("sed -i s/a/b/ a.go", "go test ./...") == []
    assert again("git stash && go test ./...") == []
    mended = Story().turn("Retry").edit("a.go", "a", "b").run("go test ./...", RED, "failed")
    assert subjects(mended.edit("a.go", "b", "c").run("go test ./...", GREEN)) == []


def test_a_test_is_the_same_whichever_command_ran_it() -> None:
    def story(command: str) -> Story:
        return Story().turn("Look").run(command, RED, "failed").say("It fails already.")

    commands = ("go test ./...", "make test", "go test ./shop | tail -5")
    assert told(*map(story, commands)) == [("failing_command", "TestRetry: the test failed")]


def test_lines_of_a_diff_are_no_message() -> None:
    diff = "Diff in /home/ada/shop/src/main.rs:189:\n     Err(_) => {\n-        a\n+    a\n }\n"
    assert found_by_check(diff) == {"not formatted": "not_formatted"}
    story = Story().turn("Go").run("cargo fmt --all -- --check", diff, "failed")
    assert subjects(story.run("cargo fmt", "")) == ["cargo fmt: not formatted"]
    other = (
        Story().turn("Go").run("git diff && echo == x", f"{diff}(eval):1: == not found", "failed")
    )
    assert subjects(other) == ["shell: (eval):<n>: == not found"]


def test_tests_are_called_by_their_names_over_several_lines() -> None:
    printed = (
        "  19 passing (7s)\n  2 failing\n\n  1) Cart\n       adds:\n     Error: Timeout of 2000ms\n\n"
        "  2) Cart\n       with tax\n         rounds:\n\n      AssertionError: 1\n"
    )
    assert found_by_check(printed) == {"Cart adds": "test", "Cart with tax rounds": "test"}
    assert found_by_check("  1) Cart\n       adds:\n     is a list") == {}


def test_a_slip_of_one_kind_takes_three_sessions() -> None:
    def slips(line: str) -> Story:
        story = Story().turn("Go").edit("a.rs", "a", "b").run("cargo check", line, "failed")
        return story.edit("a.rs", "b", "c").run("cargo check", "Finished dev")

    code = "error[E0599]: no method named `total` found\n --> src/a.rs:3:5"
    assert told(*[slips(code)] * 2) == []
    assert told(*[slips(code)] * 3) == [("failing_command", "cargo check: E0599")]


def test_of_several_checks_that_may_have_ended_a_line_none_is_blamed() -> None:
    def failed(command: str) -> list[str]:
        story = Story().turn("Go").edit("a.py", "a", "b")
        return subjects(
            story.run(command, "would reformat a.py\n1 file would be reformatted", "failed")
        )

    assert failed("black --check . && mypy . && pytest") == []
    assert failed("cd app && black --check . && git status") == ["black: not formatted"]


def test_a_frame_of_a_traceback_is_no_message_and_a_test_has_its_whole_name() -> None:
    frames = "src/shop.py:12: in __aenter__\nE   ValueError: no price\n1 failed"
    assert found_by_check(frames) == {"ValueError: no price": "message"}
    named = "FAIL OpenCode: reads a session (12 ms)\nFAIL OpenCode: writes one 3ms\n2 failed"
    assert found_by_check(named) == {
        "OpenCode: reads a session": "test",
        "OpenCode: writes one": "test",
    }
    assert found_by_check("FAIL src/cart/cart.test.ts (5.2 s)") == {"cart.test.ts": "test"}

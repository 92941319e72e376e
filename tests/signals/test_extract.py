"""Signals of small sessions, each with the place that shows it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from msgspec import structs
from msgspec.structs import replace

from debrief.sessions.actions import described
from debrief.sessions.model import Evidence, Message, Subagent, ToolCall
from debrief.sessions.readers.patches import created, joined
from debrief.signals.extract import session_activity, session_signals
from debrief.signals.schema import CheckSignal
from tests.signals.scenario import Story, steps, story_of

RED, GREEN = "1 failed, 4 passed in 0.2s", "5 passed in 0.2s"


def fixing() -> Story:
    return Story().turn("Fix the retry of the uploader")


@pytest.mark.parametrize(
    "command",
    [
        "cat > app.py <<'EOF'\nx = 1\nEOF",
        "echo 'x = 1' >> app.py",
        "printf x | tee app.py",
        "sed -i 's/1/2/' app.py",
        "sed -i.bak -e 's/1/2/' app.py",
        "perl -pi -e 's/1/2/' app.py",
        "patch -p1 < fix.diff",
        "cd repo && git apply fix.patch",
        "python -c \"open('app.py', 'w').write('x = 1')\"",
        "python3 - <<'EOF'\nfrom pathlib import Path\nPath('app.py').write_text('x = 1')\nEOF",
        "cp template.py app.py",
        "mv draft.py app.py",
    ],
)
def test_an_edit_in_the_shell_is_one(command: str) -> None:
    facts = fixing().run(command).say("Fixed.").facts()
    assert {place.call for place in (*facts.edits, *facts.commands)} == {"c1"}
    assert facts.change


@pytest.mark.parametrize(
    "command",
    [
        "grep -n 'x > 1' app.py",
        "make > /dev/null 2>&1",
        "pytest > /tmp/out.txt",
        "git diff > change.patch",
        "git diff main > notes",
        "sed -n 1,5p app.py",
        "python -c \"print(open('app.py').read())\"",
        "rm -f old.py",
        "mkdir -p build",
        "echo 'cat > app.py'",
    ],
)
def test_what_changes_no_file_for_good_is_no_edit(command: str) -> None:
    assert fixing().run(command).facts().edits == ()


@pytest.mark.parametrize(
    ("command", "result", "passed"),
    [
        ("pytest -q", GREEN, True),
        ("pytest -q", RED, False),
        ("pytest -q 2>&1 | tail -3", RED, False),
        ("python test_cart.py", "all good", True),
        ("node test.js", "AssertionError: 1 == 2", False),
        ("./run_tests.sh", "OK", True),
        ("bash verify.sh", "❌ port is closed", False),
        ("cargo test", "test result: FAILED. 3 passed; 1 failed;", False),
        ("go test ./...", "ok  \tshop/cart\t0.1s", True),
        ("python -m unittest", "Ran 3 tests in 0.1s\n\nFAILED (errors=1)", False),
        ("mypy .", "Found 2 errors in 1 file", False),
        ("ruff check .", "All checks passed!", True),
        ("python - <<'EOF'\nimport cart\nassert cart.total() == 3\nEOF", "", True),
        ("pytest -q", "no tests ran in 0.1s", None),
        ("npm test", 'npm ERR! Missing script: "test"', None),
    ],
)
def test_a_check_and_its_outcome_are_seen(command: str, result: str, passed: bool | None) -> None:
    (check,) = fixing().run(command, result).facts().checks
    assert check.passed is passed


@pytest.mark.parametrize(
    ("late", "code", "passed"),
    [
        ("", None, None),
        ("", 0, True),
        ("no tests ran in 0.1s", 0, None),
        ("ok  \tshop/cart\t0.1s", 0, True),
        ("--- FAIL: TestTotal", 1, False),
        ("ok  \tshop/cart\t0.1s\n--- FAIL: TestTotal", None, False),
    ],
)
def test_a_check_that_was_waited_for_has_the_outcome_that_came_late(
    late: str, code: int | None, passed: bool | None
) -> None:
    story = fixing()
    told = "Process running with session ID 7\nOutput:\n"
    call = story.make("Bash", told, "failed" if code else "ok", command="go test ./...")
    story.say("", replace(call, late_result=late, exit_code=code))
    (check,) = story.facts().checks
    assert check.passed is passed


@pytest.mark.parametrize(
    "command",
    ["pytest -q a && pytest -q b", "mypy a; pytest a", "cd a && python t.py && python t.py 2"],
)
def test_several_checks_in_one_command_hide_no_failure(command: str) -> None:
    story = fixing().run("python t.py", "3").edit("app.py", "x = 1", "x = 2")
    session = story.run(command, "5 passed in 0.2s", "failed").session()
    assert not any(check.passed for check in session_activity(session).checks)
    last = session_signals(session).last_check
    assert last is not None
    assert last.passed is False


def test_a_script_that_runs_again_after_an_edit_is_a_check() -> None:
    story = fixing().run("python show.py", "Traceback (most recent call last):")
    assert story.facts().checks == ()
    (check,) = story.edit("app.py", "x = 1", "x = 2").run("python show.py", "4").facts().checks
    assert (check.tool, check.passed, check.evidence.call) == ("show.py", True, "c3")


def test_a_red_test_before_the_fix_is_no_error() -> None:
    story = fixing().run("pytest", RED, "failed")
    assert story.facts().errors == ()
    fixed = story.edit("app.py", "x = 1", "x = 2").run("pytest", GREEN)
    assert fixed.facts().errors == ()
    assert fixed.run("pytest", RED, "failed").facts().errors == (
        Evidence(1, "c4", f"pytest: {RED}"),
    )


def test_the_last_check_counts_only_if_nothing_was_edited_after_it() -> None:
    story = fixing().edit("app.py", "x = 1", "x = 2").run("pytest", GREEN)

    def last_check() -> CheckSignal | None:
        return session_signals(story.session()).last_check

    last = last_check()
    assert last is not None
    assert last.passed
    story.run("rm repro.py")
    assert last_check() == last
    story.run("echo 'x = 3' > app.py")
    assert last_check() is None


def test_rewritten_assertions_and_removed_files_are_seen_and_own_ones_are_not() -> None:
    old = fixing().edit("tests/test_cart.py", "assert total == 3", "assert total")
    assert [place.quote for place in old.facts().rewritten] == ["assert total == 3"]
    own = fixing().write("tests/test_new.py", "assert a == 1")
    own.edit("tests/test_new.py", "assert a == 1", "assert a == 2").run("rm tests/test_new.py")
    assert (own.facts().rewritten, own.facts().deleted) == ((), ())
    assert not own.facts().change
    assert fixing().edit("cart.py", "assert x", "x").facts().rewritten == ()
    gone = fixing().run("git rm -q legacy.py && rm -rf build /tmp/scratch.py notes/*.md")
    assert [place.quote for place in gone.facts().deleted] == ["legacy.py"]


def test_an_assertion_that_is_moved_or_of_the_session_itself_is_not_rewritten() -> None:
    path = "tests/test_cart.py"
    moved = fixing().edit(path, "assert total == 3", "with cart:\n    assert total == 3")
    assert moved.facts().rewritten == ()
    own = fixing().edit(path, "", "assert tax == 1", line=4)
    assert own.edit(path, "assert tax == 1", "assert tax == 2").facts().rewritten == ()
    setup = fixing().edit("cart_test.go", 't.Fatalf("no file: %v", err)', "must(err)")
    assert setup.facts().rewritten == ()


def test_each_file_of_a_patch_is_edited() -> None:
    both = joined([created("a.py", "x = 1"), created("b.py", "y = 2\nz = 3")])
    assert both is not None
    call = structs.replace(
        Story().turn("").make("apply_patch"),
        path=both.path,
        added=both.added,
        patch=both.patch,
    )
    facts = fixing().say("", call).facts()
    assert [place.quote for place in facts.edits] == ["a.py", "b.py"]
    assert facts.change.files == ("a.py", "b.py")


def test_an_exit_status_that_answers_is_no_error() -> None:
    facts = fixing().run("grep -r nothing .", "", "failed").facts()
    assert facts.errors == ()


ENDINGS = {
    "words": (Story().turn("Fix it").run("make").say("The retry waits now."), "answered"),
    "a call": (Story().turn("Fix it").run("make"), "open"),
    "words beside a call": (Story().turn("Fix it").say("Done.", Story().make("Bash")), "open"),
    "an announcement": (Story().turn("Fix it").run("make").say("Now let me write tests:"), "open"),
    "no answer at all": (Story().turn("Fix it"), "open"),
    "no answer to the last prompt": (
        Story().turn("Fix it").say("Done.").turn("And the docs?"),
        "open",
    ),
    "no answer to thanks": (
        Story().turn("Fix it").say("Done.").turn("Great, thanks!"),
        "answered",
    ),
    "a command of the program alone": (
        Story().turn("Fix it").say("Done.").turn("", number=2).deed("slash_command", "/exit"),
        "answered",
    ),
    "the only edit refused": (
        Story().turn("Fix it").edit("a.py", "a", "b", status="rejected").deed("rejection"),
        "refused",
    ),
    "the plan refused": (
        Story().turn("Plan it").call("ExitPlanMode", "no", "rejected").deed("rejection"),
        "refused",
    ),
    "a command that writes refused": (
        Story().turn("Fix it").call("Bash", "no", "rejected", command="sed -i s/a/b/ a.py"),
        "refused",
    ),
    "an edit refused, and the words with it answered": (
        Story()
        .turn("Fix it")
        .edit("a.py", "a", "b", status="rejected")
        .deed("rejection", "only tell me why")
        .say("It is the first line."),
        "answered",
    ),
    "an edit refused after another was made": (
        Story()
        .turn("Fix it")
        .edit("a.py", "a", "b")
        .edit("a.py", "b", "c", status="rejected")
        .deed("rejection"),
        "open",
    ),
    "an interruption": (Story().turn("Fix it").say("I begin").deed("interruption"), "interrupted"),
    "a limit": (Story().turn("Fix it").run("make").say("Reached max turns (30)"), "limit"),
    "a limit's notice": (
        Story().turn("Fix it").run("make").say("You've hit your limit · resets 3am"),
        "limit",
    ),
    "an error of the model's provider": (
        Story().turn("Fix it").run("make").say("API Error: 529 overloaded"),
        "limit",
    ),
    "handing in": (
        Story().turn("Fix it").run("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff"),
        "answered",
    ),
    "handing over": (
        Story().turn("Refund it").call("transfer_to_human_agents", None, "unanswered", summary="x"),
        "answered",
    ),
    "code": (Story().turn("Which one?").say("Use this:\n```\ngit status\n```"), "answered"),
}


@pytest.mark.parametrize(("story", "ending"), ENDINGS.values(), ids=ENDINGS)
def test_how_it_ends(story: Story, ending: str) -> None:
    assert story.facts().end.ending == ending


@pytest.mark.parametrize(
    "last",
    [
        "Uploads now wait when the rate limit is exceeded, and go on after it.",
        "Rate limit exceeded errors are tried again with longer and longer waits.",
        "The client answers 429 where the usage limit is reached. All tests pass.",
        "I added a message for when the prompt is too long, and a test of it.",
        "Timeout handling is done: the upload stops after 30 seconds.",
        "- Rate limit exceeded: the upload waits.\n- Max steps reached: it stops.",
    ],
)
def test_work_on_limits_is_not_stopped_by_one(last: str) -> None:
    facts = fixing().edit("app.py", "x = 1", "x = 2").say(last).facts()
    assert facts.end.ending == "answered"


def test_a_commit_without_an_answer_leaves_the_order_open() -> None:
    story = fixing().edit("app.py", "x = 1", "x = 2").run("pytest", GREEN)
    story.call("Bash", None, "unanswered", command="git commit -am 'Retry'")
    row = story.signals()
    assert (row.ending, row.change.commits) == ("open", ())
    assert [event.kind for event in row.events] == ["open_request"]


def test_what_the_person_says_and_does_is_kept_and_courtesy_is_not() -> None:
    story = fixing().say("Done.").turn("that's not what I asked for").say("Now it waits.")
    story.turn("it works now").say("Good.").turn("Thanks anyway, bye!").say("You're welcome.")
    row = story.signals()
    (event,) = row.events
    assert (event.kind, [place.turn for place in event.evidence]) == ("correction", [2])
    assert [place.turn for place in row.approvals] == [3]


def test_a_subagents_work_counts_where_it_was_started() -> None:
    calls = tuple(
        described(ToolCall(id=f"s{n}", name="Bash", input=json.dumps({"command": f"echo {n} > f{n}.py"}),
                 result="", status="ok"))
        for n in range(2)
    )  # fmt: skip
    facts = fixing().subagent("look", *calls).say("Done, all of it.").facts()
    assert [place.call for place in facts.edits] == ["s0", "s1"]


def test_subagents_of_subagents_count_once_each_where_they_were_started() -> None:
    def child(name: str, started_by: str, *starts: str) -> Subagent:
        calls = tuple(
            described(ToolCall(id=start, name="Bash", input=json.dumps({"command": f"echo > {start}.py"}),
                     result="", status="ok"))
            for start in starts
        )  # fmt: skip
        message = Message(id=name, model="m", text="looked", calls=calls)
        return Subagent(id=name, call_id=started_by, messages=(message,))

    story = fixing().run("ls", "a.py").turn("Go on").say("Done, all of it.")
    depth = 1_200
    chain = [child(f"a{n}", f"s{n - 1}" if n else "c1", f"s{n}") for n in range(depth)]
    ring = [child("b0", "r1", "r0"), child("b1", "r0", "r1")]
    session = structs.replace(story.session(), subagents=(*reversed(chain), *ring))
    facts = session_activity(session)
    assert facts.calls == 1 + depth + 2
    assert [place.call for place in facts.edits] == [*(f"s{n}" for n in range(depth)), "r0", "r1"]
    assert {place.turn for place in facts.edits[:depth]} == {1}


@settings(deadline=None, max_examples=20)
@given(steps)
def test_any_session_has_signals_and_always_the_same(given_steps: list[tuple[str, str]]) -> None:
    session = story_of(given_steps).session()
    facts = session_activity(session)
    assert facts == session_activity(story_of(given_steps).session())
    assert len(facts.errors) <= facts.calls
    assert session_signals(session).ending == facts.end.ending
    ids = {call.id for turn in session.turns for m in turn.messages for call in m.calls}
    for places in (facts.errors, facts.edits, facts.commands):
        assert {place.call for place in places} <= ids

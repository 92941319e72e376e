"""Commands that fail in two sessions: what they are called, what then worked, what they took."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.friction.failed_commands import failed_commands
from debrief.friction.grouping import recurring_failures
from debrief.friction.normalize import culprit, name_of, plain_error
from debrief.sessions.model import Usage
from tests.friction.scenario import day, events, frictions, lines, prices
from tests.signals.scenario import START, Story

NO_BUN = "Exit code 2\nerror: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"


def wrong_runner() -> Story:
    story = Story().turn("Add the discount").say("I will.").edit("shop/a.ts", "a", "b")
    return story.run("rtk bun run test 2>&1", NO_BUN, "failed").run("bun run test", "3 passed")


def tried(command: str, error: str, *then: str) -> Story:
    """Return a session in which a command fails, and some others then go well."""
    story = Story().turn("Go on").run(command, error, "failed")
    for each in then:
        story.run(each, "done")
    return story


def test_what_failed_in_two_sessions_has_its_cost_and_what_then_worked() -> None:
    hello = Story().turn("Hello").say("Hello.")
    (friction,) = frictions(wrong_runner(), hello, wrong_runner(), wrong_runner())
    assert friction.what == "rtk bun: no such subcommand"
    assert friction.line == "Run `bun run test`, not `rtk bun run test`, which fails here."
    assert friction.sessions == ("day-3", "day-2", "day-0")
    assert len(friction.events) == 3
    # Two messages each time: the one that failed, and the one that did it.
    assert friction.usage == Usage(input=600, output=600)
    assert friction.cost_usd == pytest.approx(1.8)
    assert friction.minutes == 6
    assert friction.first_seen.date() == START.date()
    newest, older = friction.examples
    assert (newest.session_id, older.session_id) == ("day-3", "day-2")
    assert newest.command == "rtk bun run test"
    assert "unrecognized subcommand 'bun'" in newest.evidence.quote
    assert frictions(wrong_runner()) == []


def test_a_tool_that_is_not_there_is_seen_behind_a_pipe() -> None:
    hidden = Story().turn("Test it").run("rtk bun run test 2>&1 | tail -20", NO_BUN[12:])
    hidden.run("bun run test", "3 passed")
    assert lines(hidden, hidden) == lines(wrong_runner(), wrong_runner())
    assert events(Story().turn("Look").run("cat a.log | head", "rtk: command not found")) == []


NO_GO = "/bin/bash: line 1: go: command not found"


@pytest.mark.parametrize(
    ("then", "line"),
    [
        (
            ["PATH=$PATH:/usr/local/go/bin go build ./cmd"],
            "`go` is not on the PATH: put `PATH=$PATH:/usr/local/go/bin` before it.",
        ),
        (
            ["export PATH=$PATH:/opt/go/bin && go build ./cmd"],
            "`go` is not on the PATH: put `PATH=$PATH:/opt/go/bin` before it.",
        ),
        (
            ["/usr/local/go/bin/go build ./cmd"],
            "Run `/usr/local/go/bin/go`, not `go`, which fails here.",
        ),
        (["mise exec -- go build ./cmd"], "Run `mise exec -- go`, not `go`, which fails here."),
        (["PATH=$PATH:/home/ada/go/bin go build ./cmd"], ""),  # nobody else has that folder
        (["which go || echo none"], ""),
        (["go version"], ""),
        ([], ""),
    ],
)
def test_the_line_of_a_missing_program_names_the_way_to_it(then: list[str], line: str) -> None:
    story = tried("go build ./cmd", NO_GO, *then)
    assert lines(story, story) == [line] * bool(line)


def test_what_worked_is_the_same_by_another_runner_and_no_look() -> None:
    def worked(command: str, *later: tuple[str, str]) -> str:
        story = Story().turn("Go on").run(command, "zsh: command not found: " + command, "failed")
        for text, result in later:
            story.run(text, result)
        return events(story)[0].instead

    assert worked("pnpm test", ("bun test", "3 passed")) == "bun test"
    assert worked("docker ps", ("which docker || echo none", "none")) == ""
    assert worked("docker ps", ("/opt/docker ps || echo none", "none")) == ""
    assert worked("shop find --all", ("shop find --help", "Usage: shop find")) == ""
    assert worked("shop status --all", ("git status", "clean")) == ""
    assert worked("shop find --all a.py", ("shop find a.py", "found")) == "shop find a.py"
    assert worked("pnpm test", ("pnpm test | tail", "sh: pnpm: command not found")) == ""
    assert worked("pnpm test shop.ts cart.ts tax.ts", ("bun test", "3 passed")) == ""
    assert worked("git push", ("git push --force", "done")) == ""  # nothing refused any more


def test_sessions_that_disagree_on_what_works_have_no_line() -> None:
    bun, npm = (
        tried("pnpm test", "sh: pnpm: not found", f"{each} test") for each in ("bun", "npm")
    )
    assert lines(bun, npm) == []
    assert lines(bun, bun, npm) == ["Run `bun test`, not `pnpm test`, which fails here."]
    nothing = tried("pnpm test", "sh: pnpm: not found")
    assert lines(bun, nothing) == ["Run `bun test`, not `pnpm test`, which fails here."]


@pytest.mark.parametrize(
    ("command", "then"),
    [
        ("go run ./cmd/shop --table", "go run ./cmd/shop"),
        ("cargo run --quiet", "cargo run"),
        ("./bin/shop --table", "./bin/shop"),
        ("python -m shop.main --table", "python -m shop.main"),
        ("node dist/shop.js --table", "node dist/shop.js"),
    ],
)
def test_a_program_that_is_being_worked_on_is_left_aside(command: str, then: str) -> None:
    option = command.split()[-1]
    story = tried(command, f"Error: unknown option {option}", then)
    assert events(story) == []


@pytest.mark.parametrize(
    ("command", "result"),
    [
        ("rg -n discount src", "Exit code 1"),
        ("git diff --no-index a b", "Exit code 1\n-error: a\n+error: b"),
        ("which node", "node not found"),
        ("for f in *; do cat $f; done", "Exit code 1\nall of this is text"),
        ("go test ./...", "--- FAIL: TestRetry (0.00s)\n    want 3, got 1\nFAIL"),
        ("uv run pyright", "src/a.py:3:5 - error: Type of x is unknown (reportUnknown)\n1 error"),
        ("ls docs/old.md", "ls: cannot access 'docs/old.md': No such file or directory"),
        ("pnpm dev", "Error: listen EPERM: operation not permitted 127.0.0.1"),
        ("git pull", "fatal: Could not read from remote repository."),
        ("npm run ship", "error Command failed with exit code 1."),
        ("pnpm install", "permission denied by the user"),
        ("pnpm install", "<tool_use_error>Sibling tool call errored</tool_use_error>"),
        ("vercel inspect shop --logs", "Building\nsh: 1: vite: not found"),
    ],
)
def test_an_answer_a_finding_and_what_the_machine_does_are_no_friction(
    command: str, result: str
) -> None:
    assert events(Story().turn("Look").run(command, result, "failed")) == []


def test_an_option_that_a_program_does_not_know_is_left_out() -> None:
    story = tried("shop status --no-pager", "Error: unknown flag: --no-pager", "shop status")
    assert lines(story, story) == ["Leave `--no-pager` out of `shop status`, which fails with it."]
    other = tried("shop status a.py b.py", "Error: no shop is open", "shop status a.py")
    assert lines(other, other) == []  # the same command, of other files


def test_another_version_of_a_program_is_named_alone() -> None:
    story = tried("python tools/a.py", "sh: python: command not found", "python3 tools/a.py")
    assert lines(story, story) == ["Run `python3`, not `python`, which fails here."]
    other = tried("python tools/a.py", "sh: python: command not found", "python3 tools/b.py")
    assert lines(other, other) == []


def test_a_remedy_is_of_the_last_failure_before_it() -> None:
    story = Story().turn("Go").run("shop up cart", "error: no shop is open", "failed")
    story.run("shop up cart --again", "error: no shop is open", "failed")
    story.run("shop up cart --open", "done")
    assert [event.instead for event in events(story)] == ["", "shop up cart --open"]


def test_what_an_edit_may_have_mended_or_works_at_another_time_is_no_remedy() -> None:
    error = "error: no shop is open"
    mended = Story().turn("Go").run("shop up cart", error, "failed").edit("a.toml", "a", "b")
    assert lines(*[mended.run("shop up cart --open", "done")] * 2) == []
    at_times = tried("shop up cart", error, "shop up cart --open", "shop up cart")
    assert lines(at_times, at_times) == []
    missing = Story().turn("Go").run("pnpm test", "sh: pnpm: not found", "failed")
    missing.edit("a.ts", "a", "b").run("bun test", "3 passed")
    assert lines(missing, missing) == ["Run `bun test`, not `pnpm test`, which fails here."]


def test_of_a_message_only_the_share_of_the_calls_that_failed_counts() -> None:
    story = Story().turn("Go on")
    failed = [
        story.make("Bash", "sh: pnpm: not found", "failed", command=f"pnpm test {name}")
        for name in ("a", "b")
    ]
    fine = [story.make("Read", file_path=f"/home/ada/shop/{name}.py") for name in ("a", "b", "c")]
    (event,) = events(story.say("", *failed, *fine))  # both at once: it happened once
    assert event.usage == Usage(input=20, output=20)
    assert event.cost_usd == pytest.approx(0.06)


def test_what_has_no_price_is_unknown_and_not_free() -> None:
    (event,) = failed_commands(day(0, wrong_runner()), lambda model: None)
    assert event.cost_usd is None


def test_sessions_of_two_repositories_or_of_none_are_not_put_together() -> None:
    session = day(0, wrong_runner())
    others = [replace(session, id="b", repository="b"), replace(session, id="n", repository="")]
    nobody = replace(session, id="m", repository="")
    found = [e for each in (session, *others, nobody) for e in failed_commands(each, prices)]
    assert len(found) == 4
    assert recurring_failures(found) == []


_JUNK = [
    "Error: x not found", "bash: pnpm: command not found", "Traceback (most recent call last):",
    "FAILED tests/a.py::test_b", "fatal: not a git repository", "npm ERR! code 1",
    "permission denied by the person", "1 failed, 2 passed",
]  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["run", "read", "write", "turn"]), st.sampled_from(_JUNK)),
        max_size=12,
    )
)
def test_outputs_that_only_mention_errors_are_no_friction(given: list[tuple[str, str]]) -> None:
    story = Story().turn("Look at the log")
    for number, (step, text) in enumerate(given):
        if step == "run":
            story.run(f"cat log-{number}.txt", text)
        elif step == "read":
            story.read(f"/home/ada/shop/{number}.log", text)
        elif step == "write":
            story.write(f"/home/ada/shop/{number}.md", text)
        else:
            story.turn("Go on")
    assert events(story) == []


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("rtk bun run test", "rtk bun run test"),
        ("uv run --with x pytest tests/a.py -k b", "uv run pytest"),
        ("gh pr view 12 --json title", "gh pr view"),
        ("git push origin main", "git push"),
        ("/usr/bin/python3 -m pytest tests", "pytest"),
        ("sed -n 1,2p a.py", "sed"),
        ("./scripts/check.sh all", "check.sh"),
    ],
)
def test_a_command_is_called_by_what_it_does(command: str, name: str) -> None:
    assert name_of(command.split()) == name


def test_the_part_that_failed_is_the_one_that_the_error_names() -> None:
    line = "cd sub && mise run lint && gh pr view 3"
    assert culprit(line, "mise ERROR no task lint found")[0] == "mise"
    assert culprit(line, "no pull requests found") == ()  # either may have ended it
    assert culprit(line.replace("&&", ";"), "no pull requests found")[0] == "gh"
    assert culprit("git add -A && git commit -m x", "hook refused")[:2] == ("git", "commit")
    assert plain_error("/a/b/c.py:12: KeyError at 0x7f3a2b1c9d00 after 12.5s") == (
        plain_error("/z/c.py:7: KeyError at 0x7f3a2b1c9d88 after 3s")
    )

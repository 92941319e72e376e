"""Calls that fail again and again: what they are called, what then worked, what they took."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from debrief.sessions.model import Usage
from debrief.troubles.grouping import find_troubles
from debrief.troubles.naming import culprit, name_of, plain_error, says_why
from debrief.troubles.remedies import line_for
from tests.signals.scenario import START, Story
from tests.troubles.scenario import day, events, told, troubles

NO_BUN = "Exit code 2\nerror: unrecognized subcommand 'bun'\n\nUsage: rtk [OPTIONS] <COMMAND>"
NOT_THERE = "<tool_use_error>String to replace not found in file.\nString: a</tool_use_error>"


def wrong_runner() -> Story:
    story = Story().turn("Add the discount").say("I will.").edit("shop/a.ts", "a", "b")
    return story.run("rtk bun run test 2>&1", NO_BUN, "failed").run("bun run test", "3 passed")


def test_a_tool_that_is_not_there_has_its_sessions_its_cost_and_what_then_worked() -> None:
    hello = Story().turn("Hello").say("Hello.")
    (trouble,) = troubles(wrong_runner(), hello, wrong_runner(), wrong_runner())
    assert (trouble.kind, trouble.subject) == ("missing_tool", "rtk bun: no such subcommand")
    assert (trouble.count, trouble.sessions) == (3, ("day-3", "day-2", "day-0"))
    assert trouble.worked == "bun run test"
    # Two messages each time: the one that failed, and the one that did it.
    assert trouble.usage == Usage(input=600, output=600)
    assert trouble.cost_usd == pytest.approx(1.8)
    assert trouble.minutes == 6
    assert trouble.first_seen.date() == START.date()
    newest, older = trouble.examples
    assert (newest.session_id, older.session_id) == ("day-3", "day-2")
    assert newest.command == "rtk bun run test"
    assert "unrecognized subcommand 'bun'" in newest.evidence.quote


def test_a_tool_that_is_not_there_is_seen_behind_a_pipe() -> None:
    hidden = Story().turn("Test it").run("rtk bun run test 2>&1 | tail -20", NO_BUN[12:])
    hidden.run("bun run test", "3 passed")
    (trouble,) = troubles(hidden, wrong_runner(), hidden)
    assert (trouble.count, trouble.worked) == (3, "bun run test")
    assert events(Story().turn("Look").run("cat a.log | head", "rtk: command not found")) == []


def test_two_failures_are_one_trouble_up_to_paths_and_numbers() -> None:
    def story(path: str, line: int) -> Story:
        error = f"{path}:{line}:3: error is not nil (line {line - 3}) but it returns nil (nilerr)"
        lint = f"Exit code 1\n[lint] $ golangci-lint run ./...\n{error}\n1 issues:"
        return (
            Story()
            .turn("Go on")
            .edit(f"/home/ada/shop/{path}", "a", "b")
            .run("mise run lint", lint, "failed")
            .edit(f"/home/ada/shop/{path}", "b", "c")
            .run("mise run lint", "")
        )

    three = [story("resume.go", 221), story("cmd/explain.go", 31), story("a.go", 4)]
    assert told(*three[:2]) == []  # two slips of one kind
    assert told(*three) == [("failing_command", "mise run lint: nilerr")]


def test_a_check_that_found_something_once_is_the_work_itself() -> None:
    red = "--- FAIL: TestRetry (0.00s)\n    want 3, got 1\nFAIL"
    first = Story().turn("Retry").edit("a_test.go", "", "x").run("go test ./...", red, "failed")
    first.run("go test -v ./...", red, "failed")  # nothing was changed: the same failure again
    first.edit("a.go", "a", "b").run("go test ./...", "ok shop 0.1s")
    other = Story().turn("Cap").edit("b_test.go", "", "x")
    other.run("go test ./...", red.replace("TestRetry", "TestCap"), "failed")
    other.edit("b.go", "a", "b").run("go test ./...", "ok shop 0.1s")
    assert told(first, other, first) == []


def test_a_test_that_fails_while_it_is_worked_on_is_the_work_itself() -> None:
    red = "--- FAIL: TestRetry (0.00s)\n    want 3, got 1\nFAIL"
    story = Story().turn("Retry").edit("a.go", "a", "b").run("go test ./...", red, "failed")
    story.edit("a.go", "b", "c").run("go test ./...", red, "failed")
    assert events(story) == []
    story.edit("a.go", "c", "d").run("go test ./...", red, "failed")
    assert [event.reason for event in events(story)] == ["test"] * 3
    assert troubles(story, story, story) == []


def test_a_test_that_fails_before_anything_was_changed_is_a_trouble_of_three_sessions() -> None:
    red = "--- FAIL: TestRetry (0.00s)\n    want 3, got 1\nFAIL"
    story = Story().turn("Retry").run("go test ./...", red, "failed").edit("a.go", "a", "b")
    (trouble,) = troubles(story, story, story)
    assert (trouble.subject, trouble.reason) == ("TestRetry: the test failed", "unsteady_test")
    assert troubles(story, story) == []


def test_a_test_that_fails_only_beside_another_is_no_trouble_of_its_own() -> None:
    def story(names: str) -> Story:
        red = "".join(f"--- FAIL: {name} (0.00s)\n" for name in names.split())
        return Story().turn("Go on").run("go test ./...", f"{red}FAIL", "failed")

    def failing(*runs: str) -> set[str]:
        return {trouble.name for trouble in troubles(*map(story, runs))}

    both = ("TestCart TestTax",) * 3
    assert failing(*both) == {"TestCart"}
    assert failing(*both, "TestTax") == {"TestTax"}
    assert failing(*both, "TestTax", "TestCart") == {"TestCart", "TestTax"}


def test_calls_whose_ids_are_masked_with_one_word_are_not_one_call() -> None:
    story = Story().turn("Go on")
    for name in ("price", "tax"):
        story.run(f"npm run {name}", f"Exit code 1\nTypeError: {name} is undefined")
    found = events(story, story, story)
    masked = [replace(event, evidence=replace(event.evidence, call="REDACTED")) for event in found]
    assert len(find_troubles(found, {"shop": 3})) == len(find_troubles(masked, {"shop": 3})) == 2


def test_a_wrong_guess_is_a_trouble_when_the_same_path_is_guessed_again() -> None:
    def story(path: str) -> Story:
        gone = f"Exit code 1\nls: cannot access '{path}': No such file or directory"
        return Story().turn("Look").run(f"ls {path}", gone, "failed")

    assert told(story("docs/old.md"), story("docs/plan.md")) == []
    named = "rg: tests: No such file or directory (os error 2)"
    searched = Story().turn("Look").run("rg -n price tests", named, "failed")
    assert [event.file for event in events(searched)] == ["tests"]
    gone = "zsh: no such file or directory: tools/run.sh"
    by_shell = Story().turn("Look").run("tools/run.sh a", gone, "failed")
    assert [event.file for event in events(by_shell)] == ["tools/run.sh"]
    again = Story().turn("Look")
    again.call("Read", "File does not exist.", "failed", file_path="/home/ada/shop/docs/old.md")
    assert told(story("docs/old.md"), again, again) == [
        ("failing_command", "docs/old.md: not there")
    ]


def test_edits_that_miss_and_permissions_that_are_refused() -> None:
    refused = "The user doesn't want to proceed with this tool use. The tool use was rejected."

    def story() -> Story:
        told = Story().turn("Go on").edit("shop/a.py", "a", "b", status="failed")
        told.call("Edit", NOT_THERE, "failed", file_path="/home/ada/shop/b.py")
        told.read("/home/ada/shop/b.py")
        told.edit("/home/ada/shop/b.py", "a", "b")
        return told.run("git push --force origin main", refused, "rejected")

    assert told(story(), story()) == []
    assert sorted(told(*[story()] * 3)) == [
        ("missed_edit", "an edit: the text to replace was not there"),
        ("refused_permission", "git push: refused"),
    ]
    missed = [event for event in events(story()) if event.kind == "missed_edit"]
    assert [event.file for event in missed] == ["shop/a.py", "b.py"]
    assert len(missed[1].calls) == 3  # it failed, the file was read, then it went well


def test_edits_that_miss_are_one_trouble_whichever_file_it_was_and_must_have_cost_something() -> (
    None
):
    def story(path: str) -> Story:
        return Story().turn("Go on").call("Edit", NOT_THERE, "failed", file_path=path)

    missed = [story(f"/home/ada/shop/{name}.py") for name in "abc"]
    (trouble,) = troubles(*missed)
    assert (trouble.count, trouble.names) == (3, ("a.py", "b.py", "c.py"))
    cheap = [replace(event, cost_usd=0.1) for event in events(*missed)]
    assert find_troubles(cheap, {"shop": 3}) == []
    often = [replace(event, of_edits=13) for event in events(*missed)]
    assert find_troubles(often, {"shop": 3}) == []  # as everywhere
    assert events(story("")) == []  # misses of files that are not known have nothing in common


def test_two_files_that_cannot_be_read_are_two_troubles() -> None:
    def story(path: str) -> Story:
        denied = "EACCES: permission denied"
        return Story().turn("Look").call("Read", denied, "failed", file_path=path)

    a, b = (f"/home/ada/shop/{name}" for name in ("a.py", "b.py"))
    assert told(story(a), story(a), story(b), story(b)) == []
    assert told(*[story(a)] * 3) == [("failing_command", "Read a.py: EACCES: permission denied")]


def test_an_answer_is_no_failure() -> None:
    story = (
        Story()
        .turn("Look")
        .run("rg -n discount src", "Exit code 1", "failed")
        .run("git diff --no-index a b", "Exit code 1\n-error: a\n+error: b", "failed")
        .run("which node", "node not found", "failed")
        .run("for f in *; do cat $f; done", "Exit code 1\nall of this is text", "failed")
    )
    assert told(*[story] * 3) == []


def test_of_a_message_only_the_share_of_the_calls_that_failed_counts() -> None:
    story = Story().turn("Go on")
    failed = [
        story.make("Bash", "sh: pnpm: not found", "failed", command=f"pnpm test {name}")
        for name in ("a", "b")
    ]
    fine = [story.make("Read", file_path=f"/home/ada/shop/{name}.py") for name in ("a", "b")]
    (event,) = events(story.say("", *failed, *fine))  # both at once: it happened once
    assert event.usage == Usage(input=50, output=50)
    assert event.cost_usd == pytest.approx(0.15)


def test_what_has_no_price_is_unknown_and_not_free() -> None:
    session = day(0, wrong_runner())
    from debrief.troubles.finding import events_of

    (event,) = events_of(session, lambda model: None)
    assert event.cost_usd is None


_JUNK = [
    "Error: x not found", "bash: pnpm: command not found", "Traceback (most recent call last):",
    "FAILED tests/a.py::test_b", "String to replace not found in file.", "fatal: not a git repository",
    "permission denied by the person", "1 failed, 2 passed", "npm ERR! code 1", "Unknown skill: commit",
]  # fmt: skip


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["run", "read", "write", "turn"]), st.sampled_from(_JUNK)),
        max_size=12,
    )
)
def test_outputs_that_only_mention_errors_are_no_trouble(
    given_steps: list[tuple[str, str]],
) -> None:
    story = Story().turn("Look at the log")
    for number, (step, text) in enumerate(given_steps):
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


def test_what_worked_is_the_same_by_another_runner_and_no_look() -> None:
    def worked(command: str, *later: tuple[str, str]) -> str:
        story = Story().turn("Go on").run(command, "zsh: command not found: " + command, "failed")
        for text, result in later:
            story.run(text, result)
        return events(story)[0].worked

    assert worked("pnpm test", ("bun test", "3 passed")) == "bun test"
    assert worked("docker ps", ("which docker || echo none", "none")) == ""
    assert worked("docker ps", ("which docker", "docker not found")) == ""
    assert worked("docker ps", ("/opt/docker ps || echo none", "none")) == ""
    assert worked("shop find --all", ("shop find --help", "Usage: shop find")) == ""
    assert worked("shop status --all", ("git status", "clean")) == ""
    assert worked("git add a.py gone.py", ("git add a.py", "")) == ""  # it does less
    assert worked("shop find --all a.py", ("shop find a.py", "found")) == "shop find a.py"
    assert worked("pnpm test", ("pnpm test | tail", "sh: pnpm: command not found")) == ""
    assert worked("pnpm test shop.ts cart.ts tax.ts", ("bun test", "3 passed")) == ""


def test_a_check_takes_until_its_next_run_and_is_mended_by_the_only_command_between() -> None:
    def mended(*between: str) -> tuple[str, float | None]:
        lint = "Exit code 1\na.go:3:3: error is not nil but it returns nil (nilerr)\n1 issues:"
        story = Story().turn("Go on").edit("a.go", "a", "b").run("mise run lint", lint, "failed")
        for command in between:
            story.run(command, "")
        (event,) = events(story.run("mise run lint", "").run("git push", ""))
        return event.worked, event.minutes

    assert mended("mise run fix") == ("mise run fix", 3)
    assert mended("mise run fix", "git add -A") == ("", 4)
    assert mended() == ("", 2)


def test_what_a_program_says_of_its_end_counts_and_what_a_file_says_of_it_does_not() -> None:
    log = "Exit code 1\nTypeError: price is undefined"
    assert events(Story().turn("Look").read("ci.log", log)) == []
    (event,) = events(Story().turn("Go on").run("npm run price", log))
    assert (event.kind, event.command) == ("failing_command", "npm run price")


def test_the_agents_own_stop_and_calls_made_at_once_are_no_repeated_failures() -> None:
    server = Story().turn("Look").run("npm run dev", "ready")
    server.call("write_stdin", "6:21 [vite] page reload", "failed", session_id=1, chars="\x03")
    assert events(server) == []
    story = Story().turn("Look")
    at_once = [
        story.make("Bash", "zsh: command not found: vercel", "failed", command=f"vercel {word}")
        for word in ("domains", "alias", "teams")
    ]
    assert troubles(story.say("", *at_once)) == []


def test_a_result_of_blocks_is_called_by_its_text() -> None:
    def failed(text: str) -> Story:
        blocks = f'[{{"type":"text","text":"{text}"}}]'
        return Story().turn("Look").call("mcp__page__js", blocks, "failed", code="go()")

    words = "the page of the shop was not there although the server had said that it would be"
    assert told(*(failed(f"{what}: {words}") for what in ("TypeError", "Timed out", "Gone"))) == []
    assert told(*[failed("no tab is open")] * 3) == [
        ("failing_command", "mcp__page__js: no tab is open")
    ]


def test_edits_of_one_file_made_at_once_miss_once() -> None:
    story = Story().turn("Go")
    missed = [
        story.make("Edit", NOT_THERE, "failed", file_path="/home/ada/shop/a.css", old_string=old)
        for old in ("a", "b", "c")
    ]
    assert [event.kind for event in events(story.say("", *missed))] == ["missed_edit"]


def test_a_compilers_warning_is_not_why_a_test_failed() -> None:
    printed = "a.c:3: warning: null character ignored [-Wnull-character]\nFAIL shop/cart 0.1s"
    story = Story().turn("Go").run("./ship.sh", printed, "failed")
    assert all("warning" not in event.subject for event in events(story))


def test_what_the_log_of_another_machine_lacks_is_not_missing_here() -> None:
    printed = "Building\nsh: 1: vite: not found"
    elsewhere = Story().turn("Go").run("vercel inspect shop --logs", printed, "failed")
    assert events(elsewhere) == []
    here = Story().turn("Go").run("npm run build", printed, "failed")
    assert [event.kind for event in events(here)] == ["missing_tool"]


def test_an_option_that_a_program_does_not_know_is_one_trouble_whatever_it_was_to_do() -> None:
    def story(command: str, error: str) -> Story:
        return Story().turn("Look").run(command, error, "failed")

    stories = (
        story("shop status --no-pager", "Error: unknown flag: --no-pager"),
        story("shop search cart --no-pager", "error: unexpected argument '--no-pager' found"),
        story("shop log --no-pager | head", "shop: unrecognized option '--no-pager'"),
    )
    assert told(*stories) == [("failing_command", "shop: unknown option --no-pager")]
    other = story("shop sell", "unknown flag: --all")  # of something that it ran itself
    assert events(other)[0].subject == "shop sell: unknown flag: --all"


def test_what_worked_may_be_another_version_of_a_program() -> None:
    def worked(command: str) -> str:
        story = (
            Story().turn("Go").run("python tools/a.py", "sh: python: command not found", "failed")
        )
        return events(story.run(command, "done"))[0].worked

    assert worked("python3 tools/a.py") == "python3"
    assert worked(".venv/bin/python tools/a.py") == ".venv/bin/python"
    assert worked("python3 tools/b.py") == ""
    assert worked("node tools/a.py") == worked("pythonize tools/a.py") == ""


def test_what_worked_may_be_the_only_command_in_between() -> None:
    refused = "husky - generated files are stale\nerror: commit refused"

    def worked(*between: str) -> str:
        story = Story().turn("Go").run("git commit -m x", refused, "failed")
        for command in between:
            story.run(command, "done")
        return events(story.run("git commit -m x", "[main 0a1b2c3] x"))[0].worked

    assert worked("pnpm api:generate") == "pnpm api:generate"
    assert (
        worked("git status") == worked("pnpm lint") == ""
    )  # a look mends nothing, nor does a check
    assert worked("pnpm lint:fix") == "pnpm lint:fix"
    assert worked("pnpm api:generate", "pnpm build") == ""  # which of them is not known


def test_a_command_that_then_works_in_another_folder_was_in_the_wrong_one() -> None:
    gone = "fatal: pathspec 'go/a.go' did not match any files"

    def event(then: str) -> tuple[str, str]:
        story = Story().turn("Go").run("git add go/a.go", gone, "failed").run(then)
        (found,) = events(story)
        return found.kind, found.worked

    root = 'cd "$(git rev-parse --show-toplevel)" && git add go/a.go'
    assert event("cd /home/ada/shop && git add go/a.go") == ("wrong_folder", root)
    below = "cd sub && git add go/a.go"
    assert event("cd /home/ada/shop/sub && git add go/a.go") == ("wrong_folder", below)
    assert event("git add go/a.go") == ("failing_command", "")


def test_what_a_deed_may_have_mended_was_not_the_folder() -> None:
    def kind(error: str, *between: str) -> str:
        story = Story().turn("Go").run("npx prisma migrate dev", error, "failed")
        for command in between:
            story.run(command, "done")
        return events(story.run("cd /home/ada/shop && npx prisma migrate dev", "done"))[0].kind

    gone = "Error: could not find schema.prisma"
    assert kind(gone, "ls") == "wrong_folder"
    assert kind(gone, "npm install") == "failing_command"
    assert kind("Error: connect ECONNREFUSED", "docker compose up -d db") == "failing_command"


@pytest.mark.parametrize(
    "line", ["zsh:1: no matches found: src/(shop)/a.ts", "(eval):3: no matches found: *.md"]
)
def test_a_pattern_that_nothing_has_is_an_answer(line: str) -> None:
    assert events(Story().turn("Look").run("ls src/(shop)/a.ts", line, "failed")) == []


def test_what_the_machine_refuses_is_one_trouble_whichever_command_ran_into_it() -> None:
    refused = "Error: listen EPERM: operation not permitted 127.0.0.1"

    def story(command: str, result: str) -> Story:
        return Story().turn("Test it").run(command, result, "failed")

    as_json = json.dumps(
        separators=(",", ":"),
        obj={"chunk_id": "1", "exit_code": 1, "output": f"\n> shop test\n{refused}\n"},
    )
    stories = [
        story("pnpm test", f"> shop test\n{refused}"),  # a check that found nothing
        story("node serve.js", refused),
        story("npx vitest run", f"Script completed\nOutput:\n{as_json}"),
    ]
    assert told(*stories) == [
        ("failing_command", "Error: listen EPERM: operation not permitted <n>")
    ]
    ran = story("pnpm test", "3 passed, 1 failed\nError: logged by a test")
    assert events(ran) == []  # what it found, it does not say in a form that is known


def test_a_remedy_is_of_the_last_failure_before_it_and_of_what_never_works() -> None:
    def worked(*later: tuple[str, str, str]) -> list[str]:
        story = (
            Story().turn("Go").run("git fetch origin", "error: cannot open FETCH_HEAD", "failed")
        )
        for command, result, status in later:
            story.run(command, result, status)
        return [event.worked for event in events(story)]

    https = ("git fetch https://shop.example/a origin", "done", "ok")
    assert worked(https) == ["git fetch https://shop.example/a origin"]
    unread = ("git fetch origin", "fatal: Could not read from remote repository.", "failed")
    assert worked(unread, https) == ["", "git fetch https://shop.example/a origin"]
    assert worked(https, ("git fetch origin", "done", "ok")) == [""]


def test_edits_of_files_that_were_not_read_are_one_trouble_of_three_sessions() -> None:
    unread = "<tool_use_error>File has not been read yet. Read it first.</tool_use_error>"

    def story(*names: str) -> Story:
        story = Story().turn("Go")
        for name in names:
            path = f"/home/ada/shop/{name}"
            story.call("Edit", unread, "failed", file_path=path, old_string="a", new_string="b")
        return story

    assert told(story("a.py", "b.py", "c.py"), story("d.py", "e.py")) == []
    assert told(story("a.py", "b.py"), story("c.py"), story("d.py")) == [
        ("missed_edit", "an edit: the file was not read before it was edited")
    ]
    made = Story().turn("Go").call("Write", unread, "failed", file_path="/home/ada/shop/a.py")
    assert events(made) == []  # another agent had made it meanwhile


def test_a_folder_that_is_not_there_is_a_wrong_folder() -> None:
    lost = "/bin/bash: line 1: cd: src: No such file or directory"
    (event,) = events(Story().turn("Go").run("cd src && ls", lost, "failed"))
    assert event.kind == "wrong_folder"


def test_what_is_missing_is_named_with_its_sort() -> None:
    def missing(command: str, error: str) -> tuple[str, str]:
        (event,) = events(Story().turn("Go on").run(command, f"Exit code 1\n{error}", "failed"))
        assert event.kind == "missing_tool"
        return event.name, event.reason

    assert missing("shop-cli info", "Error: No such command 'info'.") == (
        "shop-cli info",
        "subcommand",
    )
    assert missing("git ship", "git: 'ship' is not a git command. See 'git --help'.") == (
        "git ship",
        "subcommand",
    )
    wsl = "The command 'docker' could not be found in this WSL 2 distro."
    assert missing("docker compose up", wsl) == ("docker", "program")
    assert missing("python3 a.py", "ModuleNotFoundError: No module named 'httpx'") == (
        "httpx",
        "python_module",
    )


@pytest.mark.parametrize(
    "error",
    [
        "Script error",
        "Exit code 1\nerror Command failed with exit code 1.",
        "ELIFECYCLE  Command failed with exit code 2.",
        "make: *** [Makefile:30: page] Error 1",
        "AssertionError: expected 3 to be 4 // Object.is equality",
    ],
)
def test_an_error_may_say_no_more_than_that_it_failed(error: str) -> None:
    assert not says_why(error.removeprefix("Exit code 1\n"), "make page")


def test_errors_that_say_no_more_may_be_different_ones() -> None:
    story = (
        Story().turn("Go on").run("make page", "error Command failed with exit code 1.", "failed")
    )
    assert [event.reason for event in events(story)] == ["unsaid"]
    assert told(story, story, story) == []


def test_a_warning_of_a_library_is_not_what_a_check_found() -> None:
    result = (
        "Exit code 1\nauth/client.py:12: LibDeprecationWarning: lib.jose module is deprecated\n"
        "FAILED tests/test_a.py::test_price - assert 1 == 2\n1 failed, 1 warning in 0.2s"
    )
    story = Story().turn("Go on").run(".venv/bin/python -m pytest", result, "failed")
    assert [event.name for event in events(story)] == ["test_price"]


def test_a_file_that_is_too_large_to_be_read_whole_has_a_line() -> None:
    error = "File content (28375 tokens) exceeds maximum allowed tokens (25000). Please use offset."
    path = "/home/ada/shop/prices.py"
    story = Story().turn("Look").call("Read", error, "failed", file_path=path)
    (trouble,) = troubles(*[story] * 4)
    assert (trouble.subject, trouble.reason) == (
        "prices.py: too large to be read whole",
        "too_large",
    )
    assert line_for(trouble) == "Read `prices.py` in parts: it is too large to be read whole."
    elsewhere = Story().turn("Look").call("Read", error, "failed", file_path="/tmp/out.txt")
    assert told(elsewhere, elsewhere, elsewhere) == []

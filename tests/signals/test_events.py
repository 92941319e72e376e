"""What a person would want to look at, each with where it stands."""

from __future__ import annotations

from datetime import timedelta

import pytest

from debrief.signals.excerpts import failing_line, first_line, says_something
from debrief.signals.shell import pattern
from tests.signals.scenario import START, Story

DIRTY = "On branch main\nChanges not staged for commit:\n\tmodified:   theirs.py\n\nUntracked files:\n\tnotes.md\n"


def looked(printed: str = " M theirs.py\n?? notes.md\n") -> Story:
    return Story().turn("Fix it").run("git status --short", printed)


def events(story: Story) -> dict[str, list[str]]:
    return {
        e.kind: [place.quote for place in e.evidence] for e in story.say("Done.").signals().events
    }


@pytest.mark.parametrize("printed", [" M theirs.py\n?? notes.md\n", DIRTY])
@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("git checkout -- theirs.py", ["theirs.py"]),
        ("git restore theirs.py", ["theirs.py"]),
        ("git checkout .", ["notes.md", "theirs.py"]),
        ("git reset --hard", ["notes.md", "theirs.py"]),
        ("rm notes.md", ["notes.md"]),
    ],
)
def test_somebody_elses_files_that_are_thrown_away(
    command: str, lost: list[str], printed: str
) -> None:
    assert events(looked(printed).run(command))["foreign_files"] == lost
    own = Story().turn("Fix it").edit("theirs.py", "a", "b").write("notes.md", "x")
    own.run("git status --short", printed).run(command)
    assert "foreign_files" not in events(own)


def test_a_stash_that_the_session_did_not_make_is_somebody_elses() -> None:
    drop = Story().turn("Fix it").run("git stash list", "stash@{0}: WIP").run("git stash drop")
    assert events(drop)["foreign_files"] == ["git stash drop"]
    own = Story().turn("Fix it").run("git stash").run("git stash drop")
    assert events(own) == {"destructive": ["git stash drop"]}


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- a.py b.py",
        "git checkout HEAD -- a.py",
        "git checkout main -- a.py",
        "git checkout src/a.py",
        "git restore a.py",
        "git stash clear",
        "git push origin --delete topic",
        "git push origin :topic",
        "git worktree remove --force ../topic",
    ],
)
def test_what_throws_work_away_is_seen_refused_or_not(command: str) -> None:
    assert events(Story().turn("Fix it").run(command))["destructive"] == [command]
    refused = Story().turn("Fix it").call("Bash", "no", "rejected", command=command)
    found = events(refused.deed("rejection", "leave that alone"))
    assert found["destructive"] == [f"refused: {command}"]
    assert found["refusal"] == [f"{command}: leave that alone"]


@pytest.mark.parametrize(
    "command",
    [
        "git checkout topic",
        "git checkout -b topic-1.2",
        "git restore --staged a.py",
        "git stash",
        "git stash list",
        "git branch -d topic",
        "git clean -nd",
        "git push origin topic",
    ],
)
def test_ordinary_commands_of_git_throw_nothing_away(command: str) -> None:
    assert events(Story().turn("Fix it").run(command)) == {}


def test_a_destructive_command_that_failed_destroyed_nothing() -> None:
    printed = "error: pathspec 'a.py' did not match any file(s) known to git"
    assert events(Story().turn("Fix it").run("git checkout -- a.py", printed, "failed")) == {}


@pytest.mark.parametrize(
    "command",
    ["env | grep -i proxy", "sed -n 's/=.*$/=<set>/p' .env", "printenv | grep CI | sort"],
)
def test_a_part_or_the_names_of_an_environment_show_no_secret(command: str) -> None:
    assert events(Story().turn("Fix it").run(command)) == {}


def test_events_come_in_the_order_of_urgency_and_say_where() -> None:
    story = Story().turn("Fix it").run("cat .env").edit("a.py", "a", "b")
    story.deed("interruption").turn("no, that's wrong, put it back").run("git checkout -- b.py")
    row = story.signals()
    kinds = [event.kind for event in row.events]
    assert kinds == ["destructive", "exposure", "correction", "interruption", "open_request"]
    assert row.events[3].evidence[0].quote == "at: Edit a.py"
    assert [event.count for event in row.events] == [1] * 5


def test_a_stop_is_quoted_by_the_call_that_was_made_before_it() -> None:
    story = Story().turn("Fix it").run("make all")
    story.deed("interruption", minutes=2)
    assert story.signals().events[0].evidence[0].quote == "at: make all"
    assert timedelta(0) < story.session().turns[0].interventions[0].at - START  # type: ignore[operator]


def test_requests_are_the_persons_words_by_turn() -> None:
    story = Story().turn("<ide_selection>x = 1</ide_selection>\nRename\\\nit").say("Done.")
    story.deed("remark", "and the tests too").turn("old way", rewound=True).say("ok")
    story.turn("", images=1).say("I see.")
    found = [(place.turn, place.quote) for place in story.signals().requests]
    assert found == [(1, "Rename it"), (1, "and the tests too"), (3, "(a picture)")]


def test_a_request_that_points_to_a_file_is_what_the_file_says() -> None:
    story = (
        Story().turn("Do what TASK.md says").read("/home/ada/shop/TASK.md", "     1\tAdd a cart")
    )
    assert [place.quote for place in story.say("Done.").signals().requests] == ["Add a cart"]
    unknown = Story().turn("Do what TASK.md says").say("Done.").signals().requests
    assert "not known" in unknown[0].quote


@pytest.mark.parametrize(
    ("printed", "line"),
    [
        ("12 passed, with 0 failures\nfatal: pathspec 'x' did not match", "fatal: pathspec"),
        ("warning: old\nerror: could not apply 1a2b3c4", "error: could not apply"),
        ("[lint] $ golangci-lint run\na.go:3:1: unused\n[lint] ERROR task failed", "[lint] ERROR task failed"),
        ("<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>", "String to"),
        ("Rebasing (1/2)\rerror: could not apply", "error: could not apply"),
        ("Command running in background with ID 7\nTraceback (most recent call last):", "Traceback"),
    ],
)  # fmt: skip
def test_a_failure_is_quoted_by_the_line_that_says_why(printed: str, line: str) -> None:
    assert failing_line(printed, pattern("outcomes", "failed")).startswith(line)


@pytest.mark.parametrize("line", ['"}', "---", "Done in 310ms.", "$ tsc", "> tsc", "=====", ""])
def test_lines_that_say_nothing_are_not_quoted(line: str) -> None:
    assert not says_something(line)
    assert first_line(f"{line}\n3 files written") == "3 files written"


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- a.py",  # that the agent edited itself
        "git show HEAD~1:b.py > b.py && pytest; git checkout b.py",
        "cd /tmp/trial && git reset --hard HEAD",
    ],
)
def test_what_the_agent_wrote_itself_or_scratch_is_nobodys_loss(command: str) -> None:
    row = Story().turn("Fix it").edit("a.py", "a", "b").run(command).say("Done.").signals()
    assert "destructive" not in [event.kind for event in row.events]

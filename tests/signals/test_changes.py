"""What a session changed, held against what git says of the same repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from debrief.signals.extract import session_signals
from tests.signals.repository import Repository
from tests.signals.scenario import Story

SESSIONS = 40
STEPS = 12


@pytest.mark.parametrize("seed", range(SESSIONS))
def test_signals_say_what_git_says(tmp_path: Path, seed: int) -> None:
    repository = Repository(tmp_path, seed)
    for _ in range(STEPS):
        repository.step()
    row = session_signals(repository.story.say("Done.").session())
    changed, gone = repository.truth()
    assert (set(row.change.files), set(row.change.deleted)) == (changed, gone)
    assert len(row.change.commits) == len(repository.counted)
    assert (row.change.counted or 0) == sum(repository.counted)
    assert bool(row.change) == bool(changed or gone or repository.counted)


COUNTED = "[main 0a1b2c3] Rename\n 40 files changed, 40 insertions(+), 40 deletions(-)\n"


def asked(prompt: str = "Rename it") -> Story:
    return Story().turn(prompt)


def test_files_that_a_command_does_not_name_are_counted_by_git() -> None:
    story = asked().run("git ls-files | xargs sed -i s/colour/color/g")
    row = (
        story.run("git commit -qam x && git log -1", "").run("git commit -am y", COUNTED).signals()
    )
    assert row.change.commands == ("sed -i s/colour/color/g",)
    assert (row.change.files, row.change.counted) == ((), 40)
    assert row.change.commits[-1].quote.startswith("[main 0a1b2c3] Rename 40 files changed")


def test_a_dependency_that_is_raised_and_committed_is_a_change_of_the_added_files() -> None:
    story = asked().run("go get example.org/yaml@v2", "go: upgraded example.org/yaml")
    printed = "[main 0a1b2c3] Raise\n 2 files changed, 6 insertions(+)\n"
    row = story.run("git add go.mod go.sum && git commit -m Raise", printed).signals()
    assert (row.change.files, row.work) == (("go.mod", "go.sum"), "settings")


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("gofmt -l .", ""),
        ("black --check .", "2 files would be reformatted"),
        ("ruff format", "12 files left unchanged"),
        ("npm install", "added 3 packages"),
        ("rm -rf node_modules build __pycache__", ""),
        ("mkdir -p src/web", ""),
        ("cp -r theirs /tmp/mine", ""),
        ("cd /tmp/trial && git init -q && echo 1 > a.py && git commit -m x", "[main 1234567] x"),
        ("rm -rf runs && git status --short", ""),
        ("d=$(mktemp -d) && cd $d && sed -i s/a/b/ *.py", ""),
        ("git push --dry-run", "   1234567..2345678  main -> main"),
        ("git push", "Everything up-to-date"),
        ("git diff main > notes.md", ""),
    ],
)
def test_what_changes_nothing_of_the_work_is_no_change(command: str, printed: str) -> None:
    assert not asked().run(command, printed).signals().change


def test_what_was_refused_cancelled_or_not_answered_is_no_change() -> None:
    story = asked().call("Bash", "no", "rejected", command="rm a.py")
    story.call("Bash", None, "unanswered", command="git commit -m x").edit(
        "b.py", "a", "b", status="failed"
    )
    assert (
        not story.run("sed -i s/a/b/ c.py && rm d.py", "Exit code 1", "failed")
        .run("git commit -m x", "FAILED: git commit\n6 failed", "ok")
        .signals()
        .change.deleted
    )


@pytest.mark.parametrize("prompt", ["Fix the clone", "Fix /tmp/tool/report.mjs"])
def test_a_clone_below_tmp_is_work_where_it_is_committed_or_named(prompt: str) -> None:
    story = asked(prompt).edit("/tmp/tool/report.mjs", "a", "b").write("/tmp/note.md", "x")
    assert story.signals().change.files == (("/tmp/tool/report.mjs",) if "/tmp" in prompt else ())
    printed = "[cost 1a2b3c4] cost\n 1 file changed, 1 insertion(+)\n"
    row = story.run("cd /tmp/tool && git commit -am cost", printed).signals()
    assert row.change.files == ("/tmp/tool/report.mjs",)
    assert (row.work, row.lines_kept, row.change.counted) == ("code", 2, 1)


def test_a_shell_keeps_its_folder_and_a_call_may_name_another() -> None:
    story = asked().run("cd web && npm test").run("sed -i s/a/b/ app.ts")
    story.call("shell", "", command=["bash", "-lc", "rm old.py"], workdir="/home/ada/shop/api")
    change = story.signals().change
    assert (change.files, change.deleted) == (("web/app.ts",), ("api/old.py",))


def test_an_amended_commit_counts_once_and_a_commit_of_others_is_not_counted() -> None:
    first = "[main 0a1b2c3] x\n 2 files changed, 1 insertion(+)\n"
    again = "[main 4d5e6f7] x\n Date: Mon Mar 2\n 3 files changed, 2 insertions(+)\n"
    story = asked().edit("a.py", "a", "b").run("git commit -am x", first)
    row = story.run("git commit --amend --no-edit", again).signals()
    assert [place.quote for place in row.change.commits] == [
        "[main 4d5e6f7] x 3 files changed, 2 insertions(+)"
    ]
    assert row.change.counted == 3
    assert asked().run("git commit --amend -m y", again).signals().change.counted is None


def test_lines_that_were_thrown_away_are_not_kept() -> None:
    story = asked().edit("a.py", "a", "b").edit("b.py", "a", "b").run("git checkout -- a.py")
    row = story.signals()
    assert (row.change.files, row.lines_kept) == (("b.py",), 2)


@pytest.mark.parametrize(
    ("story", "work"),
    [
        (asked().edit("a.py", "a", "b"), "code"),
        (asked().edit("README.md", "a", "b"), "text"),
        (asked().edit("README.md", "a", "b").edit("ci.yml", "a", "b"), "settings"),
        (asked().run("git pull --ff-only", "Fast-forward").say("Up to date."), "operations"),
        (asked().run("git log -3", "1234567 x").say("It was Ada."), "answer"),
        (asked().say("Yes."), "answer"),
        (asked(), "nothing"),
    ],
)
def test_what_kind_of_work_it_was(story: Story, work: str) -> None:
    assert story.signals().work == work


def test_what_a_stash_took_and_gave_back_is_there_again() -> None:
    story = asked().edit("b.py", "a", "b").edit("a.py", "a", "b").run("git stash", "Saved")
    assert not story.signals().change
    assert story.run("git stash pop", "Dropped").signals().change.files == ("a.py", "b.py")
    lost = asked().edit("a.py", "a", "b").run("git stash").run("git stash pop", "error", "failed")
    assert not lost.run("git stash drop").signals().change

"""What a judge is shown of a session: whole hunks or none, and a word on what is missing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.judging.context import changes_of, context_from_session, has_change, requests_of
from debrief.judging.fitting import FileDiff, fit, left_out_note, split_hunks
from tests.judging.scenario import make_session
from tests.signals.scenario import Story, steps, story_of

ONE = "@@ -1,2 +1,2 @@\n import os\n-a = 1\n+a = 2\n"
TWO = "@@ -9,1 +9,2 @@\n x\n+y\n"
NEW = "@@ -0,0 +1,2 @@\n+def retry():\n+    return 3\n"


def test_the_plan_is_what_was_asked_for_and_the_changes_are_diffs_by_file() -> None:
    session = make_session(
        ("/home/ada/shop/a.py", ONE), ("/home/ada/shop/b.py", NEW), ("/home/ada/shop/a.py", TWO)
    )
    context = context_from_session(session)
    assert context.plan_content == "[turn 1]\nAdd a retry to upload()"
    assert f"--- a/a.py\n+++ b/a.py\n{ONE}{TWO}" in context.git_changes
    assert f"--- /dev/null\n+++ b/b.py\n{NEW}" in context.git_changes
    assert "2 files changed, 4 lines added, 1 removed" in context.git_changes
    assert "Left out" not in context.git_changes


def test_a_session_without_edits_that_were_made_says_so() -> None:
    for session in (
        make_session(),
        make_session(("a.py", ONE), status="failed"),
        make_session(("a.py", ONE), status="rejected"),
    ):
        assert "changed no file" in context_from_session(session).git_changes


def test_a_file_outside_the_working_directory_keeps_its_path() -> None:
    (change,) = changes_of(make_session(("/home/ada/shopping/a.py", ONE)))
    assert change.path == "/home/ada/shopping/a.py"


def test_least_telling_hunks_go_first_and_are_named() -> None:
    big = "@@ -1,1 +1,200 @@\n" + '+  "x": 1,\n' * 200
    session = make_session(
        ("src/app.py", ONE), ("package-lock.json", big), ("docs/guide.md", TWO), prompt="Do it"
    )
    changes = context_from_session(session, max_size=400).git_changes
    assert ONE in changes
    assert TWO in changes
    assert '"x": 1' not in changes
    assert "package-lock.json: the whole file's changes (201 lines)" in changes


def test_a_file_may_lose_some_hunks_and_keep_others() -> None:
    long = "@@ -5,1 +5,9 @@\n" + "+long line of code\n" * 9
    file = FileDiff(path="a.py", hunks=(ONE, long, TWO))
    text, left_out = fit([file], room=len(ONE) + len(TWO) + 40)
    assert text == f"--- a/a.py\n+++ b/a.py\n{ONE}{TWO}"
    assert left_out == ["a.py: 1 of 3 hunks"]


def test_a_plan_that_is_too_long_loses_its_middle_and_says_how_much() -> None:
    plan = "First the aim. " + "word " * 5000 + "Last the condition."
    context = context_from_session(make_session(("a.py", ONE), prompt=plan), max_size=2000)
    assert context.plan_content.startswith("[turn 1]\nFirst the aim.")
    assert context.plan_content.endswith("Last the condition.")
    assert "characters of the plan left out for size" in context.plan_content
    assert ONE in context.git_changes


def test_the_note_stays_short_for_a_thousand_files() -> None:
    note = left_out_note([f"f{n}.py: 1 of 2 hunks" for n in range(1000)])
    assert note.count("\n") < 30
    assert "980 more files" in note


hunks = st.lists(
    st.integers(1, 60).map(lambda n: f"@@ -1,1 +1,{n} @@\n" + "+line\n" * n), min_size=1, max_size=4
)
changes = st.lists(
    st.builds(
        lambda path, found: FileDiff(path=path, hunks=tuple(found)),
        st.sampled_from(["a.py", "b.md", "c.json", "tests/test_d.py", "yarn.lock"]),
        hunks,
    ),
    max_size=6,
)


@given(files=changes, room=st.integers(0, 2000))
def test_what_is_shown_fits_and_nothing_is_lost_without_a_word(
    files: list[FileDiff], room: int
) -> None:
    text, left_out = fit(files, room)
    assert len(text.replace("\n--- ", "--- ")) <= room or not text
    shown = text.count("@@ -1,1")
    told = 0
    for sentence in left_out:
        if "whole file" not in sentence:
            told += int(sentence.rsplit(": ", 1)[1].split()[0])
    whole = sum(
        len(file.hunks)
        for file in files
        if any(s.startswith(f"{file.path}: the whole") for s in left_out)
    )
    assert shown + told <= sum(len(file.hunks) for file in files) <= shown + told + whole


@given(parts=hunks)
def test_hunks_split_and_join_to_the_same_patch(parts: list[str]) -> None:
    assert list(split_hunks("".join(parts))) == parts


def shown(story: Story) -> tuple[str, str]:
    context = context_from_session(story.session())
    return context.plan_content, context.git_changes


def test_all_that_the_person_asked_for_is_the_plan_with_its_turns() -> None:
    story = Story().turn("Replace the path").say("Where?").deed("answer", "In go.mod")
    story.turn("/release", expansion="Tag it and push").say("Tagged.").deed("remark", "not v2!")
    story.turn("Wrong, start over", rewound=True).turn("And the docs", images=2).say("Done.")
    plan, _ = shown(story)
    assert plan == (
        "[turn 1]\nReplace the path\n\n[turn 1, said to a question]\nIn go.mod\n\n"
        "[turn 2]\n/release\nThe command stands for:\nTag it and push\n\n"
        "[turn 2, said during the work]\nnot v2!\n\n"
        "[turn 3, taken back later]\nWrong, start over\n\n"
        "[turn 4, with 2 pictures]\nAnd the docs"
    )


def test_of_many_requests_the_longest_gives_way_and_no_short_one() -> None:
    story = Story().turn("Short one").turn("See " + "log line\n" * 9_000).turn("Another")
    plan = requests_of(story.session(), 2_000)
    assert len(plan) <= 2_000
    assert "[turn 1]\nShort one\n" in plan
    assert plan.endswith("[turn 3]\nAnother")
    assert "characters of the plan left out for size" in plan


def test_what_a_shell_changed_is_named_with_its_command_and_never_its_expression() -> None:
    story = Story().turn("Rename it").edit("compact.go", "a", "b")
    story.run("grep -rl old . | xargs sed -i '' 's|entire\\.io/old|entire.io/new|g'")
    story.run("sed -i -e 's/1/2/' limits.go ./compact.go").run("git rm --cached notes.txt")
    story.run("go get golang.org/x/net@latest", "go: upgraded golang.org/x/net")
    story.run("npm install").run("echo 1 > /tmp/scratch.go").run(
        "sed -i s/1/2/ x.go", "no", "failed"
    )
    _, changes = shown(story.say("Renamed."))
    assert "- turn 1: files by `sed -i" in changes
    assert "- turn 1: limits.go, ./compact.go\n    $ sed -i -e" in changes
    assert "- turn 1: notes.txt (removed)\n    $ git rm --cached notes.txt" in changes
    assert "- turn 1: files by `go get golang.org/x/net@latest`\n    $ go get" in changes
    assert not [name for name in ("npm", "scratch", "x.go") if name in changes.split("What was")[0]]


def test_what_git_printed_of_the_sessions_own_change_is_shown_and_other_history_is_not() -> None:
    diff = "diff --git a/{0} b/{0}\nindex 1..2 100644\n--- a/{0}\n+++ b/{0}\n{1}"
    old, new = diff.format("limits.go", ONE), diff.format("limits.go", TWO)
    story = Story().turn("Raise it").run("git diff", diff.format("theirs.go", ONE))
    story.edit("app.go", "a", "b").run("sed -i s/1/2/ limits.go")
    story.run("git diff main...HEAD", diff.format("branch.go", ONE))
    story.run("git diff", f"{old}{diff.format('app.go', ONE)}tests ok\n").run("git diff", new)
    story.run("git commit -am x", "[main 0a1b2c3] Raise it\n 2 files changed, 4 insertions(+)\nok")
    story.run("git show --stat 0a1b2c3", " app.go | 2 +-\n 1 file changed, 1 insertion(+)\n")
    story.run("git show 9f9f9f9", diff.format("history.go", ONE))
    _, changes = shown(story)
    assert f"As git printed it in turn 1:\n--- a/limits.go\n+++ b/limits.go\n{TWO}" in changes
    assert changes.count("+++ b/app.go") == 1
    assert "git commit: [main 0a1b2c3] Raise it\n 2 files changed, 4 insertions(+)\n" in changes
    assert " app.go | 2 +-\n 1 file changed" in changes
    assert not [
        name for name in ("theirs", "branch.go", "history.go", "import os") if name in changes
    ]


def test_refused_edits_and_the_agents_own_plans_are_no_change() -> None:
    story = Story().turn("Fix it").edit("a.py", "x", "y", status="rejected")
    story.write("/home/ada/.claude/plans/fix.md", "# Plan\n1. Fix it")
    story.deed("rejection", "not like this")
    story.say("", story.make("ExitPlanMode", "refused", "rejected", plan="1. Fix it"))
    plan, changes = shown(story)
    assert plan.endswith("[turn 1, said with a refusal]\nnot like this")
    assert "changed no file" in changes
    assert "# Plan" not in changes
    assert "Refused by the person, so not done:\n- turn 1: Edit a.py\n" in changes
    assert "It ends with the only change: ExitPlanMode, which the person refused" in changes
    assert not has_change(story.session())


def test_the_closing_answer_is_shown_whole_and_checks_with_their_outcomes() -> None:
    answer = "The limit is not kept.\n" + "It needs a lock in each caller.\n" * 40 + "Shall I?"
    story = Story().turn("Fix it").run("pytest -q", "1 failed, 3 passed in 0.1s", "failed")
    story.edit("a.py", "x", "y").run("pip install x", "ERROR: No matching", "failed")
    _, changes = shown(story.run("pytest -q", "4 passed in 0.1s").say(answer))
    for line in (
        "- turn 1: pip install x: ERROR: No matching\n",
        "target:\n- `pytest` passed after it had failed: 4 tests ran (turn 1: `4 passed in 0.1s`)\n",
        f"The agent's last words (turn 1):\n{answer}",
    ):
        assert line in changes
    _, silent = shown(Story().turn("Fix it"))
    assert "The agent said nothing." in silent


@pytest.mark.parametrize(
    ("command", "result", "changed"),
    [
        ("sed -n 1,9p a.py", "x = 1", False),
        ("git log -3 --stat", "commit 1\n a.py | 2 +-", False),
        ("git commit -m x", "[main 0a1b2c3] x\n 1 file changed, 1 insertion(+)", True),
        ("git commit -m x", "nothing to commit, working tree clean", False),
        ("go mod tidy", "", True),
        ("prettier --check .", "All matched files use Prettier code style!", False),
        ("npx prettier --write src", "src/a.ts 20ms", True),
        ("cat > notes.md <<'E'\nhello\nE", "", True),
        ("pytest > /tmp/out.txt", "", False),
    ],
)
def test_a_session_has_a_change_by_whatever_means(command: str, result: str, changed: bool) -> None:
    story = Story().turn("Do it").run(command, result).say("Done.")
    assert has_change(story.session()) == changed


@given(story=steps.map(story_of), room=st.integers(0, 3_000))
def test_any_session_can_be_shown_in_any_room(story: Story, room: int) -> None:
    session = story.session()
    context = context_from_session(session, room)
    assert context == context_from_session(session, room) or context.shrink is not None
    assert len(context.plan_content) <= max(room, len(requests_of(session, 0)))
    assert (
        not has_change(session)
        or "changed no file" not in context.git_changes
        or ("Changed by commands" in context.git_changes or "git printed" in context.git_changes)
    )

"""What a judge is shown of a session: whole hunks or none, and a word on what is missing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from debrief.judging.evaluation import (
    FileDiff,
    changes_of,
    context_from_session,
    fit,
    left_out_note,
    split_hunks,
)
from debrief.sessions.actions import described
from debrief.sessions.model import Message, ToolCall
from tests.judging.scenario import make_session

ONE = "@@ -1,2 +1,2 @@\n import os\n-a = 1\n+a = 2\n"
TWO = "@@ -9,1 +9,2 @@\n x\n+y\n"
NEW = "@@ -0,0 +1,2 @@\n+def retry():\n+    return 3\n"


def test_the_plan_is_the_first_prompt_and_the_changes_are_diffs_by_file() -> None:
    session = make_session(
        ("/home/ada/shop/a.py", ONE), ("/home/ada/shop/b.py", NEW), ("/home/ada/shop/a.py", TWO)
    )
    context = context_from_session(session)
    assert context.plan_content == "Add a retry to upload()"
    assert f"--- a/a.py\n+++ b/a.py\n{ONE}{TWO}" in context.git_changes
    assert f"--- /dev/null\n+++ b/b.py\n{NEW}" in context.git_changes
    assert "2 files changed, 4 lines added, 1 removed" in context.git_changes
    assert "shell are invisible" in context.git_changes
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
    assert context.plan_content.startswith("First the aim.")
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


def test_a_judge_sees_what_was_run_how_it_ended_and_what_a_shell_changed() -> None:
    def run(number: int, command: str, result: str, code: int) -> ToolCall:
        return described(
            ToolCall(
                id=f"r{number}",
                name="Bash",
                input=json.dumps({"command": command}),
                result=result,
                status="failed" if code else "ok",
                exit_code=code,
            )
        )

    calls = (
        run(1, "pytest -q", "1 failed, 3 passed in 0.1s", 1),
        run(2, "sed -i s/1/2/ src/limits.py && echo 1 > data.py && sed -i s/1/2/ ./a.py", "", 0),
        run(3, "pip install nothing", "ERROR: No matching distribution", 1),
        run(4, "pytest -q", "4 passed in 0.1s", 0),
    )
    session = make_session(("a.py", ONE), ("/home/ada/shop/limits.py", ONE))
    end = Message(id="m2", model="m", text="I was unable to solve this: the limit is not kept.")
    turn = session.turns[0]
    turn = structs.replace(
        turn, messages=(*turn.messages, Message(id="r", model="m", calls=calls), end)
    )
    shown = context_from_session(structs.replace(session, turns=(turn,))).git_changes
    assert shown.index(ONE) < shown.index("What was run, and how it ended")
    for line in (
        "Changed, but it is not shown how:\n- src/limits.py\n- data.py\n\n",
        "- turn 1: test (pytest) failed: 1 failed, 3 passed in 0.1s\n",
        "- turn 1: pip install nothing: ERROR: No matching distribution\n",
        "- the last check after the last edit: turn 1: test (pytest) passed: 4 passed in 0.1s\n",
    ):
        assert line in shown
    assert "- the last check" not in context_from_session(make_session(("a.py", ONE))).git_changes

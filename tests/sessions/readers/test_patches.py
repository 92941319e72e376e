"""Edits: whatever the notation, the hunks apply and the counts are theirs."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from debrief.sessions.model import ToolCall
from debrief.sessions.readers.patches import (
    FileEdit,
    created,
    deleted,
    edit_of_arguments,
    edits_of_call,
    from_apply_patch,
    from_unified,
    joined,
    lines_of,
    replaced,
)

LINES = st.lists(st.sampled_from(["", " ", "a", "b", "+", "-", "++ x", "-- y", "@@", "é"]))
HEADER = re.compile(r"@@ -(\d+),(\d+) \+(\d+),(\d+) @@")


def applied(before: list[str], patch: str) -> list[str]:
    """Apply unified hunks as the format says, checking every header and every context line."""
    after: list[str] = []
    at = 0
    lines = patch.split("\n") if patch else []
    while lines:
        match = HEADER.match(lines.pop(0))
        assert match is not None
        start, old, new_start, new = (int(number) for number in match.groups())
        begin = start - 1 if old else start
        after += before[at:begin]
        assert len(after) == (new_start - 1 if new else new_start)
        at = begin
        while old or new:
            line = lines.pop(0)
            if line[0] in " -":
                assert before[at] == line[1:]
                at, old = at + 1, old - 1
            if line[0] in " +":
                after.append(line[1:])
                new -= 1
    return after + before[at:]


@given(LINES, LINES)
def test_the_hunks_of_a_replacement_make_the_new_text_of_the_old(
    old: list[str], new: list[str]
) -> None:
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    edit = replaced("a.py", before, after)
    assert applied(lines_of(before), edit.patch) == lines_of(after)
    assert edit.added - edit.removed == len(new) - len(old)


@given(LINES, LINES)
def test_a_unified_diff_is_read_back_as_it_was_written(old: list[str], new: list[str]) -> None:
    edit = replaced("a.py", "".join(f"{x}\n" for x in old), "".join(f"{x}\n" for x in new))
    diff = f"Index: a.py\n====\n--- a.py\n+++ a.py\n{edit.patch}\n"
    assert from_unified("a.py", diff) == edit


def test_a_large_replacement_is_given_whole_where_comparing_would_take_too_long() -> None:
    old = "".join(f"old {number}\n" for number in range(5000))
    new = "".join(f"new {number}\n" for number in range(5000))
    edit = replaced("a.py", f"head\n{old}tail\n", f"head\n{new}tail\n")
    assert (edit.added, edit.removed) == (5000, 5000)
    assert applied(lines_of(f"head\n{old}tail\n"), edit.patch) == lines_of(f"head\n{new}tail\n")


def test_a_file_is_created_and_deleted_line_by_line() -> None:
    assert created("a.py", "x\n\ny") == FileEdit("a.py", 3, 0, "@@ -0,0 +1,3 @@\n+x\n+\n+y")
    assert deleted("a.py", "x\n") == FileEdit("a.py", 0, 1, "@@ -1,1 +0,0 @@\n-x")
    assert created("a.py", "") == FileEdit("a.py")


def test_a_patch_text_is_split_into_its_files() -> None:
    text = (
        "*** Begin Patch\n"
        "*** Add File: new.py\n+x\n+\n"
        "*** Update File: old.py\n*** Move to: moved.py\n"
        "@@ class A\n one\n-two\n+2\n\n@@ class B\n+*** three\n*** End of File\n"
        "*** Delete File: gone.py\n"
        "*** End Patch\n+after the end\n"
    )
    new, old, gone = from_apply_patch(text)
    assert new == FileEdit("new.py", 2, 0, "@@ -0,0 +1,2 @@\n+x\n+", True)
    assert old == FileEdit(
        "old.py",
        2,
        1,
        "@@ -1,3 +1,3 @@ class A\n one\n-two\n+2\n \n@@ -4,0 +4,1 @@ class B\n+*** three",
        True,
    )
    assert gone == FileEdit("gone.py", estimated=True)


@given(st.lists(st.sampled_from(["-x", "+x", " x", "-y", "+y", " y", "+", "-"]), max_size=12))
def test_a_line_that_a_patch_removes_and_adds_again_is_no_change(body: list[str]) -> None:
    text = "*** Begin Patch\n*** Update File: a\n@@\n" + "".join(f"{line}\n" for line in body)
    (edit,) = from_apply_patch(f"{text}*** End Patch\n")
    lines = edit.patch.split("\n")[1:]
    for side in "+-":
        kept = [line[1:] for line in body if line[0] != side]
        assert [line[1:] for line in lines if line[0] != side] == kept
    written = sum(line[0] != " " for line in body)
    assert edit.added + edit.removed <= written


def test_a_patch_text_that_repeats_a_line_adds_what_is_new() -> None:
    (edit,) = from_apply_patch("*** Update File: a\n@@\n-x\n+x\n+y\n*** End Patch\n")
    assert (edit.added, edit.removed, edit.patch) == (1, 0, "@@ -1,1 +1,2 @@\n x\n+y")


def test_edits_of_one_call_are_joined_with_headers_between_files_alone() -> None:
    file_edit, two, other = created("a", "1"), created("a", "2"), created("b", "3")
    edit = joined([file_edit, two, other, deleted("a", "4")])
    assert edit is not None
    assert (edit.path, edit.added, edit.removed) == ("a", 3, 1)
    assert edit.patch.split("\n") == [
        "@@ -0,0 +1,1 @@",
        "+1",
        "@@ -0,0 +1,1 @@",
        "+2",
        "--- b",
        "+++ b",
        "@@ -0,0 +1,1 @@",
        "+3",
        "--- a",
        "+++ a",
        "@@ -1,1 +0,0 @@",
        "-4",
    ]
    assert joined([]) is None


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c/d.py"]), LINES, LINES), max_size=5))
def test_what_was_joined_is_separated_file_by_file(files: list[tuple[str, Any, Any]]) -> None:
    edits = [replaced(path, "\n".join(old), "\n".join(new)) for path, old, new in files]
    edit = joined(edits) or FileEdit("a")
    call = ToolCall(id="1", name="Edit", input="{}", path=edit.path, patch=edit.patch)
    parts = edits_of_call(msgspec.structs.replace(call, added=edit.added, removed=edit.removed))
    for part in parts:
        same = [edit for edit in edits if edit.path == part.path]
        assert part.added == sum(file_edit.added for file_edit in same)
        assert part.removed == sum(file_edit.removed for file_edit in same)
        assert part.patch == "\n".join(file_edit.patch for file_edit in same if file_edit.patch)
    assert {part.path for part in parts} == {edit.path for edit in edits if edit.patch}


BEGIN, END = "*** Begin Patch\n", "*** End Patch"


@pytest.mark.parametrize(
    ("arguments", "path", "added", "removed"),
    [
        ({"file_path": "a.py", "content": "x\ny\n"}, "a.py", 2, 0),
        ({"path": "a.py", "file_text": "x\ny\n"}, "a.py", 2, 0),
        ({"target_file": "a.py", "contents": "x\ny\n"}, "a.py", 2, 0),
        ({"file_path": "a.py", "old_str": "x\ny", "new_str": "x\nz"}, "a.py", 1, 1),
        ({"filePath": "a.py", "oldString": "b", "newString": "c\nd"}, "a.py", 2, 1),
        ({"file_path": "a", "changes": [{"old_str": "p", "new_str": "q\nr"}] * 2}, "a", 4, 2),
        ({"input": f"{BEGIN}*** Update File: a\n@@ def f\n-x\n+y\n+z\n c\n{END}"}, "a", 2, 1),
        ({"patchText": f"{BEGIN}*** Add File: a\n+x\n*** Add File: b\n+x\n{END}"}, "a", 2, 0),
    ],
    ids=[
        "content",
        "file_text",
        "target_file",
        "old_str",
        "oldString",
        "several",
        "patch",
        "two-files",
    ],
)
def test_an_edit_is_worked_out_from_the_arguments_of_any_tool(
    arguments: dict[str, Any], path: str, added: int, removed: int
) -> None:
    edit = edit_of_arguments(arguments)
    assert edit is not None
    assert edit.estimated
    assert (edit.path, edit.added, edit.removed) == (path, added, removed)
    assert edit.patch.startswith("@@ -")


def test_a_diff_of_what_was_done_counts_before_the_arguments() -> None:
    diff = "--- a\n+++ b\n@@ -9,1 +9,1 @@\n-long\n+short\n"
    edit = edit_of_arguments({"file_path": "a.py", "content": "x\ny"}, diff)
    assert edit == FileEdit("a.py", 1, 1, "@@ -9,1 +9,1 @@\n-long\n+short")
    assert edit_of_arguments({"file_path": "a.py", "view_range": [1, 2]}) is None
    assert edit_of_arguments({"command": "ls"}) is None

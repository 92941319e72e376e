"""Lines added and removed, from what the tool reported, else from the call's own input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import ToolCall
from tests.sessions.readers.content import calls_of
from tests.sessions.scenario import Log, hunk


def edited(tmp_path: Path, name: str, outcome: Any = None, **given: Any) -> ToolCall:
    log = Log("Go")
    log.calls("c1", name, file_path="a.py", **given)
    log.result("c1", "The file a.py has been updated.", outcome)
    return calls_of(log.read(tmp_path))[0]


@pytest.mark.parametrize("outcome", [None, "The file was updated", [], 7], ids=repr)
def test_without_a_result_object_the_input_is_compared(tmp_path: Path, outcome: Any) -> None:
    call = edited(tmp_path, "Edit", outcome, old_string="a\nb\nc", new_string="a\nB\nc\nd")
    assert (call.added, call.removed, call.estimated) == (2, 1, True)
    assert call.path == "a.py"


def test_a_file_written_over_without_a_result_object_is_compared_with_what_it_held(
    tmp_path: Path,
) -> None:
    log = Log("Go")
    log.calls("c1", "Write", file_path="a.py", content="a\nb\nc\n")
    log.result("c1", "File created successfully")
    log.calls("c2", "Edit", file_path="a.py", old_string="b", new_string="B")
    log.result("c2", "The file has been updated")
    log.calls("c3", "Write", file_path="a.py", content="a\nB\nd\n")
    log.result("c3", "The file has been updated")
    session = log.read(tmp_path)
    calls = calls_of(session)
    assert [(call.added, call.removed) for call in calls] == [(3, 0), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("error", "text"),
    [(True, "<tool_use_error>String to replace not found"), (None, "The user doesn't want to …")],
    ids=["failed", "rejected"],
)
def test_an_edit_that_was_not_carried_out_counts_nothing(
    tmp_path: Path, error: bool | None, text: str
) -> None:
    log = Log("Go")
    log.calls("c1", "Edit", file_path="a.py", old_string="a", new_string="b")
    log.result("c1", text, {"filePath": "a.py", "structuredPatch": [hunk("-a", "+b")]}, error)
    session = log.read(tmp_path)
    assert (session.lines_added, session.lines_removed) == (0, 0)


def test_a_result_told_twice_counts_once(tmp_path: Path) -> None:
    log = Log("Go")
    log.calls("c1", "Edit", file_path="a.py", old_string="a", new_string="b")
    outcome = {"filePath": "a.py", "structuredPatch": [hunk("-a", "+b")]}
    log.result("c1", "ok", outcome)
    log.result("c1", "ok", outcome)
    session = log.read(tmp_path)
    assert (session.lines_added, session.lines_removed) == (1, 1)


def test_broken_hunks_are_passed_over(tmp_path: Path) -> None:
    patch = ["no hunk", {"lines": "no list"}, {"lines": ["+a", 7, "\\ No newline at end of file"]}]
    call = edited(tmp_path, "Edit", {"filePath": ["a"], "structuredPatch": patch})
    assert (call.added, call.removed) == (1, 0)

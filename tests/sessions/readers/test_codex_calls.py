"""Calls of Codex CLI: how they ended, and what they changed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sessions.readers.codex_scenario import (
    PATCH,
    answered,
    asked,
    called,
    event,
    item,
    meta,
    read_one,
    read_turn,
    said,
)
from tests.sessions.readers.content import calls_of


@pytest.mark.parametrize(
    ("output", "status", "code"),
    [
        ("Chunk ID: 1\nWall time: 0.1 s\nProcess exited with code 0\nOutput:\nok", "ok", 0),
        ("Wall time: 0.1 s\nProcess exited with code 2\nOutput:\nno", "failed", 2),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\n", "failed", 1),
        ('{"output":"ok","metadata":{"exit_code":0}}', "ok", 0),
        ('{"output":"no","metadata":{"exit_code":3}}', "failed", 3),
        ([{"type": "input_text", "text": "Script completed\n"}], "ok", None),
        ('Script completed\nOutput:\n{"exit_code":0}\n{"exit_code":2}\n', "failed", 2),
        ('Script completed\nOutput:\n{"exit_code":0}', "ok", 0),
        ('Script completed\nOutput:\ndata = {"exit_code":2}', "ok", None),
        ([{"type": "input_text", "text": "Script failed\nboom"}], "failed", None),
        ({"content": "no", "success": False}, "failed", None),
        ("exec command rejected by user", "rejected", None),
        ("patch rejected: read-only; rejected by user approval settings", "failed", None),
        ("aborted by user after 2.0s", "failed", None),
        ("Wall time: 3.0 seconds\naborted by user", "failed", None),
        ("plain text", "ok", None),
    ],
)
def test_an_output_tells_how_the_call_ended(
    tmp_path: Path, output: Any, status: str, code: int | None
) -> None:
    session = read_turn(
        tmp_path, called(2, "exec_command", "c1", cmd="make"), answered(3, "c1", output)
    )
    (call,) = calls_of(session)
    assert (call.name, call.status, call.exit_code) == ("exec_command", status, code)
    assert json.loads(call.input) == {"cmd": "make"}


def test_an_event_answers_a_call_whose_own_output_never_came(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        called(2, "shell", "c1", command=["make"]),
        event(3, "exec_command_end", call_id="c1", exit_code=2, aggregated_output="no rule"),
        called(4, "shell", "c2", command=["make", "all"]),
    )
    first, second = calls_of(session)
    assert (first.status, first.exit_code, first.result) == ("failed", 2, "no rule")
    assert (second.status, second.result) == ("unanswered", None)


def test_a_command_that_goes_on_after_its_first_output_ends_as_its_event_says(
    tmp_path: Path,
) -> None:
    session = read_turn(
        tmp_path,
        called(2, "exec_command", "c1", cmd="make"),
        answered(3, "c1", "Wall time: 1 s\nProcess running with session ID 7\nOutput:\n"),
        event(9, "exec_command_end", call_id="c1", exit_code=2, aggregated_output="no rule"),
    )
    (call,) = calls_of(session)
    assert (call.status, call.exit_code) == ("failed", 2)


def changes(**files: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): change for name, change in files.items()}


def test_a_patch_counts_as_its_event_tells_it_file_by_file(tmp_path: Path) -> None:
    applied = changes(
        a_py={"type": "update", "unified_diff": "@@ -3,2 +3,3 @@\n x\n-y\n+z\n+++ w\n"},
        b_py={"type": "add", "content": "one\ntwo\n"},
        c_py={"type": "delete", "content": "gone\n"},
    )
    session = read_turn(
        tmp_path,
        item(2, "custom_tool_call", name="apply_patch", call_id="c1", input=PATCH),
        event(3, "patch_apply_end", call_id="c1", success=True, changes=applied),
        item(3, "custom_tool_call_output", call_id="c1", output="Success."),
    )
    (call,) = calls_of(session)
    assert (call.path, call.added, call.removed, call.status) == ("a.py", 4, 2, "ok")
    assert call.patch.startswith("@@ -3,2 +3,3 @@\n x\n-y\n+z\n+++ w\n--- b.py\n+++ b.py\n@@")
    assert (session.lines_added, session.lines_removed) == (4, 2)
    assert not call.estimated


@pytest.mark.parametrize(
    ("output", "added"),
    [("Success. Updated the following files:\nM a.py", 1), ("apply_patch verification failed", 0)],
)
def test_without_an_event_the_patch_itself_counts_when_it_succeeded(
    tmp_path: Path, output: str, added: int
) -> None:
    session = read_turn(
        tmp_path, called(2, "apply_patch", "c1", patch=PATCH), answered(3, "c1", output)
    )
    (call,) = calls_of(session)
    assert (call.added, call.removed, call.estimated) == (added, added, bool(added))


def test_patches_within_a_script_belong_to_the_script(tmp_path: Path) -> None:
    one = changes(a_py={"type": "add", "content": "x\n"})
    two = changes(b_py={"type": "add", "content": "y\nz\n"})
    session = read_turn(
        tmp_path,
        item(2, "custom_tool_call", name="exec", call_id="c1", input="await tools.apply_patch(…)"),
        event(3, "patch_apply_end", call_id="exec-1", success=True, changes=one),
        event(3.5, "patch_apply_end", call_id="exec-2", success=True, changes=two),
        item(4, "custom_tool_call_output", call_id="c1", output=[]),
        event(5, "patch_apply_end", call_id="alone", success=True, changes=one, stdout="ok"),
    )
    script, alone = calls_of(session)
    assert (script.name, script.path, script.added) == ("exec", "a.py", 3)
    assert (alone.name, alone.status, alone.added) == ("apply_patch", "ok", 1)


def test_a_script_is_known_while_the_model_talks_and_not_in_the_next_turn(tmp_path: Path) -> None:
    added = changes(a_py={"type": "add", "content": "x\n"})
    patched = event(6, "patch_apply_end", call_id="p1", success=True, changes=added)
    running = [
        *asked(1, "go"),
        item(2, "custom_tool_call", name="exec", call_id="c1", input="one()"),
        item(3, "custom_tool_call_output", call_id="c1", output="ok"),
        item(4, "custom_tool_call", name="exec", call_id="c2", input="two()"),
    ]
    talked = read_one(tmp_path, meta(), *running, said(5, "assistant", "It runs."), patched)
    assert [call.name for call in calls_of(talked)] == ["exec", "exec"]
    stopped = read_one(tmp_path, meta(), *running, *asked(5, "again"), patched)
    assert [call.name for call in calls_of(stopped)] == ["exec", "exec", "apply_patch"]


def test_other_tools_answers_are_taken_from_their_events(tmp_path: Path) -> None:
    session = read_turn(
        tmp_path,
        item(2, "web_search_call", status="completed", action={"query": "retry"}),
        event(
            3,
            "mcp_tool_call_end",
            call_id="m1",
            invocation={"server": "docs", "tool": "search", "arguments": {"q": "x"}},
            result={"Err": {"message": "away"}},
        ),
        event(4, "dynamic_tool_call_response", call_id="d1", tool="load", success=True),
    )
    found = [(call.name, call.status) for call in calls_of(session)]
    assert found == [("web_search", "ok"), ("docs__search", "failed"), ("load", "ok")]


SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "integer", "description": "Of the request."}},
    "required": ["number"],
}


def test_a_tool_that_was_searched_for_is_declared_under_the_name_it_is_called_by(
    tmp_path: Path,
) -> None:
    found = {"name": "_fetch", "description": "Fetch.", "parameters": SCHEMA, "defer_loading": True}
    session = read_turn(
        tmp_path,
        item(2, "tool_search_call", call_id="c1", arguments={"query": "requests"}),
        item(
            3,
            "tool_search_output",
            call_id="c1",
            tools=[{"type": "namespace", "name": "mcp__hub", "tools": [found]}],
        ),
        item(
            4,
            "function_call",
            name="_fetch",
            namespace="mcp__hub",
            call_id="c2",
            arguments='{"number":3}',
        ),
        answered(5, "c2", "it is merged"),
    )
    search, fetch = calls_of(session)
    assert (search.name, fetch.name) == ("tool_search", "mcp__hub_fetch")
    assert json.loads(search.result or "")["tools"] == [found]
    (tool,) = session.declared_tools or ()
    assert (tool.name, json.loads(tool.parameters)) == ("mcp__hub_fetch", SCHEMA)

"""What a call is: its action, its command, the files that it names."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from debrief.redaction.redactor import Redactor
from debrief.sessions.actions import described, with_actions
from debrief.sessions.model import Message, Session, ToolCall, calls_of
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import actions_by_name
from debrief.sessions.redaction import redact_session
from debrief.sessions.sources import read_week, scan
from tests.training.scenario import session, turn

SHARED = Path(__file__).parents[2] / "../shared/sessions"

_PLACEHOLDER = re.compile(r"<secret:[^>]+>")


def call(name: str, given: object, **more: object) -> ToolCall:
    return described(ToolCall(id="c", name=name, input=json.dumps(given), **more))  # type: ignore[arg-type]


CALLS: list[tuple[str, object, str, str, str]] = [
    # Claude Code
    ("Bash", {"command": "ls", "description": "Look"}, "run", "ls", ""),
    ("Read", {"file_path": "a.py", "limit": 9}, "read", "", "a.py"),
    ("Grep", {"pattern": "x", "path": "src"}, "search", "", "src"),
    ("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "1"}, "edit", "", "a.ipynb"),
    ("BashOutput", {"bash_id": "1"}, "wait", "", ""),
    ("TaskOutput", {"task_id": "1", "block": True}, "wait", "", ""),
    ("TodoWrite", {"todos": []}, "plan", "", ""),
    ("ExitPlanMode", {"plan": "Do it"}, "plan", "", ""),
    ("Task", {"prompt": "Look", "subagent_type": "Explore"}, "delegate", "", ""),
    ("AskUserQuestion", {"questions": []}, "ask", "", ""),
    ("WebFetch", {"url": "https://example.org"}, "web", "", ""),
    ("KillShell", {"shell_id": "1"}, "other", "", ""),
    ("Skill", {"skill": "review"}, "other", "", ""),
    # Codex
    ("exec_command", {"cmd": "ls", "workdir": "/w"}, "run", "ls", ""),
    ("shell", {"command": ["bash", "-lc", "ls -l"]}, "run", "ls -l", ""),
    ("shell", {"command": ["ls", "a b"]}, "run", "ls 'a b'", ""),
    ("shell_command", {}, "run", "", ""),
    ("write_stdin", {"session_id": 1, "chars": ""}, "wait", "", ""),
    ("write_stdin", {"session_id": 1, "chars": "yes\n"}, "other", "", ""),
    ("wait", {"cell_id": "1"}, "wait", "", ""),
    (
        *("apply_patch", {"input": "*** Begin Patch\n*** Add File: a.py\n+1\n*** End Patch"}),
        *("edit", "", "a.py"),
    ),
    (
        *("exec", {"input": 'await tools.exec_command({cmd: "ls \\"a\\"\\nls b"})'}),
        *("run", 'ls "a"\nls b', ""),
    ),
    ("exec", {"input": "run({'cmd': 'ls a'}); run({cmd: `ls b`})"}, "run", "ls a\nls b", ""),
    ("exec", {"input": "await tools.apply_patch(patch)"}, "edit", "", ""),
    ("exec", {"input": 'tools.write_stdin({session_id: 1, chars: ""})'}, "wait", "", ""),
    ("exec", {"input": 'tools.write_stdin({session_id: 1, chars: "y"})'}, "other", "", ""),
    ("exec", {"input": "text('done')"}, "other", "", ""),
    ("functions.exec", {"source": "tools.exec_command({cmd: 'ls'})"}, "run", "ls", ""),
    # others
    ("Execute", {"command": "ls"}, "run", "ls", ""),
    ("run_shell_command", {"command": "ls"}, "run", "ls", ""),
    ("run_commands", {"commands": ["ls a", "ls b"]}, "run", "ls a\nls b", ""),
    ("read_files", {"files": [{"path": "a"}, {"path": "b"}]}, "read", "", "a b"),
    ("read_bash", {"shellId": "1", "delay": 5}, "wait", "", ""),
    ("list_directory", {"dir_path": "src"}, "search", "", "src"),
    ("replace_string_in_file", {"filePath": "a.py", "oldString": "x"}, "edit", "", "a.py"),
    ("bash_command", {"keystrokes": "pytest -q\n"}, "run", "pytest -q", ""),
    ("bash_command", {"keystrokes": "q"}, "other", "", ""),
    ("bash_command", {"keystrokes": "", "duration": 5}, "wait", "", ""),
    # of servers, and unknown
    ("mcp__desktop__bash", {"command": "ls"}, "run", "ls", ""),
    ("mcp__files__read-file", {"path": "a"}, "read", "", "a"),
    ("mcp__cascade__get_command_status", {"id": "1"}, "wait", "", ""),
    ("mcp__linear__get_issue", {"id": "1"}, "other", "", ""),
    ("mcp__docs__search", {"query": "x"}, "other", "", ""),
    ("Frobnicate", {"command": "ls", "path": "https://example.org"}, "other", "", ""),
    ("Bash", ["ls"], "run", "", ""),
    ("Read", {"file_path": ["a"]}, "read", "", ""),
]


@pytest.mark.parametrize(("name", "given", "action", "command", "paths"), CALLS)
def test_a_call_says_what_it_is(
    name: str, given: object, action: str, command: str, paths: str
) -> None:
    found = call(name, given)
    assert (found.action, found.command, found.paths) == (action, command, tuple(paths.split()))


def test_what_edited_a_file_is_an_edit_whatever_its_name() -> None:
    found = call("Frobnicate", {"x": 1}, path="a.py")
    assert (found.action, found.paths) == ("edit", ("a.py",))


def test_no_two_sources_call_different_things_by_one_name() -> None:
    for reader in READERS.values():
        for name, action in actions_by_name(reader.tools).items():
            assert READERS.actions[name] == action, (reader.source, name)


def test_a_call_is_described_by_what_it_says_now() -> None:
    before = call("Bash", {"command": "ls"})
    assert described(replace(before, input='{"command":"pwd"}')).command == "pwd"
    assert described(replace(before, name="Read")).command == ""


def test_secrets_leave_a_command_as_they_leave_the_arguments_that_hold_it() -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2sT4vW6xY8zA0bC1dE2"
    redactor = Redactor(b"k" * 32)
    calls = (
        call("Bash", {"command": f"curl -H 'Authorization: token {token}' example.org"}),
        call("exec", {"input": f'tools.exec_command({{cmd: "push {token}\\nls"}})'}),
        call("shell", {"command": ["push", token, "a b"]}),
        call("Read", {"file_path": f"/home/ada/{token}/a.py"}),
    )
    told = session("s1", turn("go", Message(id="m", model="m", calls=calls)))
    clean = redact_session(told, redactor)
    assert token not in repr(clean)
    assert clean.redactions == len(calls)
    for tool_call in calls_of(with_actions(clean)):
        assert (
            set(_PLACEHOLDER.findall(f"{tool_call.command}{tool_call.paths}"))
            == set(_PLACEHOLDER.findall(tool_call.input))
            != set()
        )


@pytest.mark.shared
def test_nearly_every_shared_call_is_known_for_what_it_is() -> None:
    found = scan([SHARED])
    items = (item for week in found.weeks() for item in read_week(found, week))
    calls = [
        (item.source, tool_call)
        for item in items
        if isinstance(item, Session)
        for tool_call in calls_of(item)
    ]
    if not calls:
        pytest.skip("the shared sessions are not here")
    counts = Counter(tool_call.action for _, tool_call in calls)
    assert counts["other"] < 0.03 * len(calls), Counter(
        (source, tool_call.name) for source, tool_call in calls if tool_call.action == "other"
    )
    runs = [tool_call for _, tool_call in calls if tool_call.action == "run"]
    assert all(run.command for run in runs if run.input != "{}")
    assert not any(tool_call.command for _, tool_call in calls if tool_call.action != "run")
    files = [
        tool_call
        for _, tool_call in calls
        if tool_call.action in ("read", "edit") and tool_call.input != "{}"
    ]
    assert sum(not file.paths for file in files) < 0.01 * len(files)

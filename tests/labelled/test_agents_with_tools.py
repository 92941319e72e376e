"""Rows of labelled sessions whose agents call tools: what becomes of each in Claude Code's form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session, ToolCall
from debrief.sessions.readers import READERS
from debrief.sessions.readers.base import Transcript
from tests.labelled.mirrors import mirror
from tools.labelled import codex, kill_terminalbench, openclaw, predev, swe_agent, tau2
from tools.labelled.repository import Repository
from tools.labelled.transcript import Labelled

_ASKED = "Make the tests pass."


def read(labelled: Labelled, folder: Path) -> Session:
    """Read a session as users' own sessions are read."""
    path = folder / f"{labelled.transcript.session_id}.jsonl"
    path.write_bytes(labelled.transcript.encode())
    return READERS["claude-code"].read(Transcript(source="claude-code", path=str(path)))


def calls_of(session: Session) -> list[ToolCall]:
    return [call for turn in session.turns for said in turn.messages for call in said.calls]


def trial(folder: str, reward: str = "1\n") -> dict[str, Any]:
    return {f"{folder}/result.json": {"task_name": "fix"}, f"{folder}/verifier/reward.txt": reward}


def openclaw_steps() -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []

    def add(source: str, role: str, message: str, call: str | None = None, **more: Any) -> None:
        extra = {"openclaw_role": role, "tool_call_id": call, **more.pop("extra", {})}
        stamp = f"2026-04-13T22:58:{len(steps):02}Z"
        steps.append({"source": source, "timestamp": stamp, "message": message, "extra": extra})
        steps[-1] |= more

    def asked(call: str, name: str, **arguments: Any) -> dict[str, Any]:
        return {"tool_call_id": call, "function_name": name, "arguments": arguments}

    add("user", "user", _ASKED)
    run = asked("c1", "exec", command="pytest -q", timeout=60, workdir="/app")
    add("agent", "assistant", "I run them.", tool_calls=[run], reasoning_content="First look.")
    add("agent", "toolResult", "1 failed", "c1", extra={"exec_exit_code": 1})
    add("user", "user", _ASKED)
    edits = [{"oldText": "a", "newText": "b"}]
    write = asked("c3", "write", path="/app/y.py", content="b\n")
    edit = asked("c2", "edit", path="/app/x.py", edits=edits)
    add("agent", "assistant", "", tool_calls=[edit, write])
    add("agent", "toolResult", "not found", "c2", extra={"exec_status": "error"})
    add("agent", "toolResult", "written", "c3")
    add("agent", "assistant", "Done.")
    return [*steps[:-1], steps[1], steps[2], steps[-1]]


def test_openclaw_runs_become_sessions_with_claude_codes_tools(tmp_path: Path) -> None:
    broken = {"jobs/j/broken/agent/trajectory.json": {"steps": openclaw_steps()}}
    steps = {"jobs/j/fix__1/agent/trajectory.json": {"steps": openclaw_steps()}}
    mirror(tmp_path, "o/n", trial("jobs/j/fix__1") | steps | broken)

    (labelled,) = openclaw.terminal_bench(Repository(tmp_path / "o+n/repo", "HEAD"))

    assert (labelled.task, labelled.success) == ("terminalbench:fix", True)
    session = read(labelled, tmp_path)
    assert [turn.prompt for turn in session.turns] == [_ASKED]
    run, edit, write = calls_of(session)
    assert (run.name, run.exit_code, run.status) == ("Bash", 1, "failed")
    assert json.loads(run.input) == {"command": "cd /app && pytest -q", "timeout": 60000}
    assert (edit.name, edit.status, write.name, write.added) == ("Edit", "failed", "Write", 1)
    assert session.turns[-1].messages[-1].text == "Done."


def test_the_answers_of_kill_terminalbench_are_read_in_their_order(tmp_path: Path) -> None:
    top = "jobs/j/fix__1/agent/episodes/episode-"
    request = {"messages": [{"role": "user", "content": f"Task:\n{_ASKED}\n"}]}
    files = trial("jobs/j/fix__1", "0\n") | {f"{top}0/request.json": request}
    for number in (0, 2, 10):
        call = {"type": "tool_use", "id": f"c{number}", "name": "bash"}
        given = {"input": {"command": f"run {number}"}}
        files[f"{top}{number}/response.json"] = {"content": [call | given]}
        printed = f"[exit_code={number}]\n\nprinted {number}"
        files[f"{top}{number}/tool-results.json"] = [
            {"tool_use_id": f"c{number}", "content": printed}
        ]
    mirror(tmp_path, "o/n", files)

    (labelled,) = kill_terminalbench.terminal_bench(Repository(tmp_path / "o+n/repo", "HEAD"))

    assert not labelled.success
    session = read(labelled, tmp_path)
    assert session.turns[0].prompt == _ASKED
    found = [(json.loads(call.input)["command"], call.exit_code) for call in calls_of(session)]
    assert found == [("run 0", 0), ("run 2", 2), ("run 10", 10)]
    assert calls_of(session)[0].result == "printed 0"


def test_predevs_programs_become_the_commands_in_them(tmp_path: Path) -> None:
    code = (
        "const a = await tools.bash({ command: 'ls \\'x\\'' });\nawait tools.bash({command: `id`})"
    )
    answer = {
        "text": '[execute_program: Look]\n\nOutput:\n{"exitCode":2}\n\nMetrics: 2 tool calls',
        "_programMetadata": {},
    }
    printed = {
        "stdout": "ok\n",
        "stderr": "",
        "exitCode": 0,
        "command": "id",
        "status": "completed",
    }
    given = [
        ("execute_program", {"code": code}, json.dumps(answer, separators=(",", ":"))),
        ("bash", {"command": "id"}, json.dumps(printed, separators=(",", ":"))),
        ("bash", {"command": "yes"}, '{"stdout":"y\\ny\\'),
        ("write_file", {"file_path": "a", "content": "b"}, "Error: no room"),
        ("return_result", {"summary": "All done."}, "Chain complete. Final summary: All done."),
    ]
    steps: list[dict[str, Any]] = []
    for number, (name, arguments, content) in enumerate(given):
        asked = {"tool_call_id": f"c{number}", "function_name": name}
        asked["arguments"] = json.dumps(arguments)
        results = {"results": [{"content": content}]}
        steps += [
            {"message": "So."},
            {"message": "", "tool_calls": [asked], "observation": results},
        ]
    folder = "predev-haiku-4-5/jobs/j/fix__1"
    trajectory = {f"{folder}/artifacts/trajectory.json": {"steps": [*steps, {"message": "So."}]}}
    mirror(tmp_path, "o/n", trial(folder) | trajectory)
    known: dict[str, Any] = {"jobs/j/fix__2/agent/trajectory.json": {"steps": openclaw_steps()}}
    known["jobs/j/fix__2/result.json"] = {"task_name": "fix"}
    mirror(tmp_path, "WishingCat/TerminalBench2-Glm5-OpenClaw", known, tag="94964c8fcb42")

    (labelled,) = predev.terminal_bench(Repository(tmp_path / "o+n/repo", "HEAD"))

    session = read(labelled, tmp_path)
    assert session.turns[0].prompt == _ASKED
    calls = calls_of(session)
    assert [call.name for call in calls] == ["Bash", "Bash", "Bash", "Write"]
    assert json.loads(calls[0].input)["command"] == "ls 'x'\nid"
    assert [(call.exit_code, call.status) for call in calls] == [
        (2, "failed"),
        (0, "ok"),
        (0, "ok"),
        (None, "failed"),
    ]
    assert [call.result for call in calls[1:3]] == ["ok\n", "y\ny"]
    assert session.turns[0].messages[-1].text == "So.\n\nAll done."


def test_a_dialogue_keeps_its_words_and_loses_the_harness(tmp_path: Path) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Hi!", "tool_calls": None},
        {"role": "user", "content": "Cancel my order.", "tool_calls": None},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "name": "cancel", "arguments": {"order": "1"}}],
        },
        {"role": "tool", "id": "c1", "requestor": "assistant", "content": "no", "error": True},
        {"role": "assistant", "content": '{"message": "I cannot."}', "tool_calls": None},
        {"role": "user", "content": None, "tool_calls": [{"id": "u1", "name": "check_for_stop"}]},
        {"role": "tool", "id": "u1", "requestor": "user", "content": "stop", "error": False},
        {"role": "user", "content": "Too bad. ###STOP###", "tool_calls": None},
    ]
    files: dict[str, Any] = {}
    for run in ("_gpt-5-mini__base_", "a_copy_of_it"):
        for number in range(114):
            said = [{**message, "turn": number} for message in messages][
                : 3 if number == 7 else None
            ]
            files[f"docs/data/{run}/task_{number}.json"] = {
                "task_id": str(number),
                "reward_info": {"reward": float(number % 2)},
                "messages": said,
            }
    mirror(tmp_path, "o/n", files | {"docs/data/short/task_0.json": {}})

    found = list(tau2.retail(Repository(tmp_path / "o+n/repo", "HEAD")))

    assert {labelled.family for labelled in found} == {"tau2-retail-gpt-5-mini"}
    assert {labelled.task for labelled in found} == {
        f"tau2-retail:{n}" for n in range(114) if n != 7
    }
    assert sum(labelled.success for labelled in found) == 56
    session = read(found[0], tmp_path)
    assert [turn.prompt for turn in session.turns] == ["Cancel my order.", "Too bad."]
    (call,) = calls_of(session)
    assert (call.name, call.status) == ("cancel", "failed")
    assert session.turns[0].messages[-1].text == "I cannot."


def test_codex_patches_become_edits_whether_called_or_in_a_program(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: /a\n+b\n*** Update File: /c\n@@\n d\n-e\n+f\n"
    text = f"{patch}*** End Patch\n"
    command = 'const r = await tools.exec_command({"cmd":"ls","workdir":"/b"});\ntext(r.output);'
    given = [
        ("apply_patch", {"input": text}, "apply_patch verification failed: no /c"),
        ("exec", {"input": f"const patch = {json.dumps(text)};"}, "[{'type': 't', 'text': 'ok'}]"),
        ("exec", {"input": command}, "Chunk ID: 1\nProcess exited with code 3\nOutput:\nno\n"),
    ]
    steps = [{"source": "user", "message": message} for message in ("<harness>", _ASKED)]
    for number, (name, arguments, content) in enumerate(given):
        asked = {"tool_call_id": f"c{number}", "function_name": name, "arguments": arguments}
        results = {"results": [{"source_call_id": f"c{number}", "content": content}]}
        more: dict[str, Any] = {"tool_calls": [asked], "observation": results}
        steps.append({"source": "agent", "message": "So.", **more})
    identity = {"agent": "codex", "model": "m", "task": "t"}
    cell = {"identity": identity, "solved": True, "rewards": {"f2p": 1}}
    files: dict[str, Any] = {}
    for run in range(10):
        files |= {f"cells/{run}/cell.json": cell}
        files |= {f"cells/{run}/raw/agent/trajectory.json": {"steps": steps}}
    mirror(tmp_path, "o/n", files)

    runs = list(codex.deep_swe(Repository(tmp_path / "o+n/repo", "HEAD")))

    assert [(run.task, run.family, run.success) for run in runs] == [
        ("deepswe:t", "codex-m", True)
    ] * 8
    session = read(runs[0], tmp_path)
    assert session.turns[0].prompt == _ASKED
    assert [(call.name, call.status, call.added) for call in calls_of(session)] == [
        ("Write", "failed", 0),
        ("Edit", "failed", 0),
        ("Write", "ok", 1),
        ("Edit", "ok", 1),
        ("Bash", "failed", 0),
    ]
    assert json.loads(calls_of(session)[-1].input) == {"command": "cd /b && ls"}


def test_swe_agents_line_edits_name_the_lines_that_were_shown(tmp_path: Path) -> None:
    given = [
        ("open x.py", "[File: /x.py (2 lines total)]\n1:a\n2:b\n"),
        ("edit 2:2\nc\nend_of_edit", "Your proposed edit has introduced new syntax error(s)."),
        ("submit", "diff"),
    ]
    state = '{"open_file": "/x.py"}'
    steps = [{"thought": "So.", "action": a, "observation": o, "state": state} for a, o in given]
    history = [{"role": "user", "content": f"ISSUE:\n{_ASKED}\n\nINSTRUCTIONS:\nBe quick."}]
    top = "results/swe-agent-results/cost_2_1"
    files = {f"{top}/a__a-1.traj": {"history": history, "trajectory": steps}}
    mirror(tmp_path, "o/n", files | {f"{top}/final_report.json": {"resolved": ["a__a-1"]}})

    (labelled,) = swe_agent.lite(Repository(tmp_path / "o+n/repo", "HEAD"))

    assert (labelled.task, labelled.success) == ("swebench:a__a-1", True)
    session = read(labelled, tmp_path)
    assert session.turns[0].prompt == _ASKED
    _, edit = calls_of(session)
    assert (edit.name, edit.status) == ("Edit", "failed")
    assert json.loads(edit.input) == {"file_path": "/x.py", "old_string": "b", "new_string": "c"}

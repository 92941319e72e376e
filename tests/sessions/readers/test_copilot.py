"""Copilot CLI's streams of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.copilot import READER
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.vscode import STREAMS
from debrief.sessions.sources import scan
from tests.sessions.readers.content import calls_of, deeds_of, prompts_of, write_records


class Stream:
    """Events of one session, each with the id and the time that come next."""

    def __init__(self, **start: Any) -> None:
        self.records: list[dict[str, Any]] = []
        context = {"cwd": "/home/ann/shop", "branch": "main", "repository": "ann/shop"}
        context["headCommit"] = "a" * 40
        facts = {"sessionId": "p1", "copilotVersion": "1.0.64", "context": context}
        self.add("session.start", **{**facts, **start})

    def add(self, kind: str, agent: str = "", **data: Any) -> Stream:
        number = len(self.records)
        at = f"2026-03-02T10:00:{number:02d}.000Z"
        whose = {"agentId": agent} if agent else {}
        record = {"type": kind, "data": data, "id": f"e{number}", "timestamp": at, **whose}
        self.records.append(record)
        return self

    def ask(self, words: str, **more: Any) -> Stream:
        return self.add("user.message", content=words, **more)

    def say(self, words: str, *requests: Any, **more: Any) -> Stream:
        return self.add("assistant.message", content=words, toolRequests=list(requests), **more)

    def run(self, name: str, given: Any, **done: Any) -> Stream:
        """Let the model call a tool and tell how that ended, unless ``done`` is empty."""
        request = {"toolCallId": f"c-{name}", "name": name, "arguments": given}
        self.say("", request)
        started = given if isinstance(given, dict) else {}
        self.add("tool.execution_start", toolCallId=f"c-{name}", toolName=name, arguments=started)
        return self.add("tool.execution_complete", toolCallId=f"c-{name}", **done) if done else self

    def lines(self) -> list[bytes]:
        return [json.dumps(record).encode() for record in self.records]

    def read(self, folder: Path) -> Session:
        (folder / "p1.jsonl").write_bytes(b"\n".join(self.lines()) + b"\n")
        (transcript,) = READER.find(walk(folder))
        return READER.read(transcript)


def metrics(**usage: int) -> dict[str, Any]:
    return {"opus": {"requests": {"count": 1}, "usage": usage}}


def test_what_the_tool_or_a_skill_says_as_the_user_is_no_prompt(tmp_path: Path) -> None:
    stream = Stream().ask("go").say("ok")
    stream.ask("<system_notification>\nthe shell is done\n</system_notification>")
    session = stream.ask("the skill says", source="skill-review").read(tmp_path)
    assert prompts_of(session) == ["go"]


def test_tokens_are_what_the_shutdowns_tell_and_the_messages_after_them(tmp_path: Path) -> None:
    stream = Stream().ask("go").say("ok", outputTokens=40)
    told = metrics(inputTokens=1000, outputTokens=50, cacheReadTokens=700, cacheWriteTokens=100)
    stream.add("session.shutdown", modelMetrics=told)
    stream.add("session.resume", sessionId="p1").ask("more").say("sure", outputTokens=9)
    session = stream.read(tmp_path)
    assert session.usage == Usage(200, 59, 100, 700)
    assert session.models == ("opus",)
    assert session.problems == ()


def test_shutdowns_tell_what_the_session_cost_so_far(tmp_path: Path) -> None:
    stream = Stream().ask("go").say("ok", outputTokens=50)
    stream.add("session.shutdown", modelMetrics=metrics(inputTokens=1000, outputTokens=50))
    stream.add("session.resume").ask("more").say("sure", outputTokens=9)
    stream.add("session.shutdown", modelMetrics=metrics(inputTokens=1600, outputTokens=59))
    assert stream.read(tmp_path).usage == Usage(1600, 59)


def test_records_of_calls_come_before_what_the_shutdown_tells(tmp_path: Path) -> None:
    stream = Stream().ask("go")
    for number in (1, 2):
        usage = {"inputTokens": 100 * number, "outputTokens": number, "cacheReadTokens": 60}
        stream.add("session.usage_record", usage=usage).say(f"{number}", outputTokens=number)
    told = metrics(inputTokens=300, outputTokens=3, cacheReadTokens=120)
    session = stream.add("session.shutdown", modelMetrics=told).read(tmp_path)
    found = [message.usage for message in session.turns[0].messages]
    assert found == [Usage(40, 1, 0, 60), Usage(140, 2, 0, 60)]
    assert session.usage == session.reported_usage == Usage(180, 3, 0, 120)
    assert session.problems == ()
    stream.add("session.shutdown", modelMetrics=metrics(inputTokens=900, outputTokens=9))
    (problem,) = stream.read(tmp_path).problems
    assert "the tool's own total" in problem.reason


def test_the_system_prompt_and_the_persons_prompts_in_it_are_taken(tmp_path: Path) -> None:
    own = "<custom_instruction>\nTest first.\n\n</custom_instruction>"
    stream = Stream().ask("go").add("system.message", role="system", content=f"You are C.\n{own}")
    session = stream.say("ok").read(tmp_path)
    assert session.system_prompt == f"You are C.\n{own}"
    assert [(each.text, each.place) for each in session.instructions or ()] == [
        ("Test first.\n", "system")
    ]


def test_what_a_subagent_is_asked_is_no_prompt_of_the_persons(tmp_path: Path) -> None:
    stream = Stream().ask("go").say("", {"toolCallId": "c1", "name": "task", "arguments": {}})
    stream.add("subagent.started", "a1", toolCallId="c1", agentName="explore")
    stream.add("user.message", "a1", content="Count them.", source="agent-p1")
    stream.add("system.message", "a1", role="system", content="You explore.")
    stream.add("session.usage_record", "a1", usage={"inputTokens": 9, "outputTokens": 2})
    stream.add("assistant.message", "a1", content="One.", parentToolCallId="c1", toolRequests=[])
    session = stream.say("One, it says.").read(tmp_path)
    assert prompts_of(session) == ["go"]
    (agent,) = session.subagents
    assert (agent.type, agent.prompt, agent.call_id) == ("explore", "Count them.", "c1")
    assert [message.usage for message in agent.messages] == [Usage(9, 2)]
    assert not session.system_prompt
    assert [message.text for message in session.turns[0].messages] == ["", "One, it says."]


def test_without_a_shutdown_the_output_counts_and_the_rest_is_said_to_be_unknown(
    tmp_path: Path,
) -> None:
    session = Stream().ask("go").say("ok", outputTokens=40).read(tmp_path)
    assert session.usage == Usage(output=40)
    assert [each.reason for each in session.problems] == [
        "no shutdown was recorded: input tokens are not known"
    ]


def test_a_shutdown_that_tells_no_tokens_does_not_hide_those_of_the_messages(
    tmp_path: Path,
) -> None:
    stream = Stream().ask("go").say("ok", outputTokens=40)
    stream.add("session.shutdown", modelMetrics=metrics(inputTokens=0, outputTokens=0))
    assert stream.read(tmp_path).usage == Usage(output=40)


@pytest.mark.parametrize(
    ("done", "status", "code"),
    [
        (
            {"success": True, "result": {"content": "<shellId: 1 completed with exit code 0>"}},
            "ok",
            0,
        ),
        ({"success": True, "result": {"content": "x\n<exited with exit code 2>"}}, "failed", 2),
        ({"success": False, "error": {"message": "no such path"}}, "failed", None),
        ({"success": False, "error": {"message": "x", "code": "denied"}}, "rejected", None),
        ({"result": {"result_type": "success", "text_result_for_llm": "ok"}}, "ok", None),
        ({}, "unanswered", None),
    ],
    ids=["exit-0", "exit-2", "error", "denied", "older", "unfinished"],
)
def test_a_completion_tells_how_the_call_ended(
    tmp_path: Path, done: Any, status: str, code: int | None
) -> None:
    (call,) = calls_of(Stream().ask("go").run("bash", {"command": "x"}, **done).read(tmp_path))
    assert (call.status, call.exit_code) == (status, code)


def test_a_permission_that_the_person_denied_is_a_rejection_with_their_words(
    tmp_path: Path,
) -> None:
    stream = Stream().ask("go").run("bash", {"command": "rm -r ."})
    stream.add("permission.requested", requestId="r1", permissionRequest={"toolCallId": "c-bash"})
    denied = {"kind": "denied-interactively-by-user", "feedback": "not that folder"}
    stream.add("permission.completed", requestId="r1", result=denied)
    stream.add("tool.execution_complete", toolCallId="c-bash", success=False, error={})
    session = stream.read(tmp_path)
    assert [call.status for call in calls_of(session)] == ["rejected"]
    assert deeds_of(session.turns[0]) == [("rejection", "not that folder")]


def test_questions_interruptions_and_compactions_are_noted(tmp_path: Path) -> None:
    stream = Stream().ask("go").run("ask_user", {"question": "how?"}, result={"content": "so"})
    stream.add("abort", reason="user_initiated").add("abort", reason="user_initiated")
    stream.add("session.compaction_complete", success=True)
    stream.add("session.compaction_complete", success=False)
    session = stream.ask("on").say("ok").read(tmp_path)
    assert [each.kind for each in session.turns[0].interventions] == ["answer", "interruption"]
    assert (session.compactions, session.turns[1].compacted) == (1, True)


def test_an_agent_within_the_stream_is_a_subagent(tmp_path: Path) -> None:
    stream = Stream().ask("go")
    stream.run("task", {"description": "look", "prompt": "find it", "agent_type": "explore"})
    stream.add("subagent.started", toolCallId="c-task", agentName="explore")
    request = {"toolCallId": "inner", "name": "view", "arguments": {"path": "a.py"}}
    stream.say("looking", request, parentToolCallId="c-task", outputTokens=5)
    stream.add(
        "tool.execution_complete",
        toolCallId="inner",
        parentToolCallId="c-task",
        success=True,
        result={"content": "x"},
    )
    stream.add("tool.execution_complete", toolCallId="c-task", result={"content": "found"})
    session = stream.say("done", outputTokens=7).read(tmp_path)
    (subagent,) = session.subagents
    assert (subagent.type, subagent.prompt, subagent.place) == ("explore", "find it", "inline")
    assert [call.status for each in subagent.messages for call in each.calls] == ["ok"]
    assert [call.name for call in calls_of(session)] == ["task"]
    assert session.usage == Usage(output=12)


def test_a_stream_is_named_after_its_folder_where_it_tells_no_id(tmp_path: Path) -> None:
    folder = tmp_path / "p7"
    folder.mkdir()
    lines = Stream(sessionId=None).ask("go").lines()
    (folder / "events.jsonl").write_bytes(b"\n".join(lines))
    (transcript,) = READER.find(walk(tmp_path))
    peek, session = READER.peek(transcript), READER.read(transcript)
    assert peek is not None
    assert peek.session_id == session.id == "p7"


def test_a_patch_counts_as_the_model_wrote_it(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Add File: a.md\n+one\n+two\n*** End Patch"
    diff = "diff --git a/a.md b/a.md\n--- /dev/null\n+++ b/a.md\n@@ -0,0 +1,3 @@\n+one\n+two\n+\n"
    stream = Stream().ask("go")
    done = {"success": True, "result": {"content": "ok", "detailedContent": diff}}
    session = stream.run("apply_patch", patch, **done).say("ok").read(tmp_path)
    assert (session.lines_added, session.lines_removed) == (2, 0)


@pytest.mark.parametrize("requests", [[], [{"requestId": "1", "message": {"text": "Fix it"}}]])
def test_a_chat_of_vs_code_and_the_stream_of_its_events_are_one_session(
    requests: list[Any], tmp_path: Path
) -> None:
    chat, stream = tmp_path / "w/chatSessions/p1.json", tmp_path / "w" / STREAMS / "p1.jsonl"
    chat.parent.mkdir(parents=True)
    document = {"version": 3, "responderUsername": "GitHub Copilot", "requests": requests}
    chat.write_text(json.dumps(document))
    events = Stream()
    events.add("user.message", content="Fix it")
    write_records(stream, *events.records)
    found = scan([tmp_path])
    (entry,) = [each for each in found.entries if each.session_id]
    assert entry.path == str(chat if requests else stream)
    assert all(each.session_id or each.expected for each in found.entries)
    assert scan([tmp_path], found.entries).entries == found.entries

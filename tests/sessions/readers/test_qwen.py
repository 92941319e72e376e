"""Qwen Code's chats: contents as Gemini's, in an envelope of their own, and told as telemetry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.qwen import READER
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    told_in,
    write_records,
)


def record(number: int, kind: str, **more: Any) -> dict[str, Any]:
    return {
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "sessionId": "s",
        "timestamp": f"2026-03-02T10:00:{number:02d}Z",
        "type": kind,
        "cwd": "/w/shop",
        "version": "0.24.4",
        "gitBranch": "main",
        **more,
    }


def user(number: int, text: str, **more: Any) -> dict[str, Any]:
    content = {"role": "user", "parts": [{"text": text}]}
    return record(number, "user", **{"provenance": "real_user", "message": content, **more})


def counts(prompt: int) -> dict[str, int]:
    return {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": 1,
        "candidatesTokenCount": 2,
        "totalTokenCount": prompt + 2,
    }


def answer(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": f"answer {number}"}, *parts]}
    told = {"model": "m", "message": content, "usageMetadata": counts(10 * number)}
    return record(number, "assistant", **{**told, **more})


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"functionCall": {"id": "c", "name": name, "args": given}}


def result(number: int, response: Any, **told: Any) -> dict[str, Any]:
    parts = [{"functionResponse": {"id": "c", "name": "f", "response": response}}]
    content = {"role": "user", "parts": parts}
    return record(number, "tool_result", message=content, toolCallResult={"callId": "c", **told})


def system(number: int, subtype: str, **payload: Any) -> dict[str, Any]:
    return record(number, "system", subtype=subtype, systemPayload=payload)


def spent(number: int, prompt: int, thread: str, agent: str = "") -> dict[str, Any]:
    event = {
        "event.name": "qwen-code.api_response",
        "response_id": f"r{number}",
        "model": "m",
        "input_token_count": prompt,
        "cached_content_token_count": 1,
        "output_token_count": 2,
        "total_token_count": prompt + 2,
        "response_text": f"said {number}",
        "prompt_id": thread,
    }
    return system(
        number, "ui_telemetry", uiEvent={**event, **({"subagent_name": agent} if agent else {})}
    )


def read_one(folder: Path, *records: Any) -> Session:
    write_records(folder / "chats" / "s.jsonl", *records)
    (session,) = read_all(READER, folder)
    return session


def test_only_the_persons_own_words_begin_a_turn(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, "go"),
        answer(2),
        user(3, "<task-notification>", subtype="notification", provenance="system"),
        answer(4),
        user(5, "wait", subtype="mid_turn_user_message", systemPayload={"displayText": "wait"}),
        answer(6),
        user(7, "nightly", subtype="cron", provenance="system"),
        user(8, "and then?"),
        answer(9),
    )
    assert prompts_of(session) == ["go", "and then?"]
    assert deeds_of(session.turns[0]) == [("remark", "wait")]
    assert told_in(session) == [("task", "<task-notification>"), ("program", "nightly")]
    assert (session.branch, session.tool_version, session.task) == ("main", "0.24.4", "shop")


def test_a_commands_text_is_kept_beside_what_was_typed(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        system(1, "slash_command", phase="invocation", rawCommand="/greet all", sentToModel=True),
        system(2, "slash_command", phase="result", rawCommand="/greet all"),
        user(3, "Greet all of them."),
        answer(4),
        system(5, "slash_command", phase="invocation", rawCommand="/about", sentToModel=False),
        user(6, "expanded", systemPayload={"displayText": "typed"}),
    )
    found = [(turn.prompt, turn.expansion) for turn in session.turns]
    assert found == [("/greet all", "Greet all of them."), ("typed", "expanded")]
    assert [deed.text for deed in session.turns[0].interventions] == ["/about"]
    assert session.slash_commands == 1


DIFF = "Index: a.py\n===\n--- a.py\tCurrent\n+++ a.py\tProposed\n@@ -1,1 +1,2 @@\n-x\n+y\n+z\n"
SHOWN = {"fileDiff": DIFF, "fileName": "a.py", "originalContent": "x\n", "newContent": "y\nz\n"}
LONG = {
    **SHOWN,
    "fileDiff": "@@ -1 +1 @@\n-Full diff omitted\n+Preview only",
    "fileDiffTruncated": True,
    "diffStat": {"model_added_lines": 900, "model_removed_lines": 7},
}
OK, ERROR = {"output": "ok"}, {"error": "no"}
FILE = {"file_path": "a.py", "content": "x\n"}
ENDS: dict[str, tuple[str, Any, Any, Any]] = {
    "diff": ("edit", OK, {"status": "success", "resultDisplay": SHOWN}, ("ok", None, 2, 1)),
    "cut": ("edit", OK, {"status": "success", "resultDisplay": LONG}, ("ok", None, 900, 7)),
    "write": ("write_file", OK, {"status": "success"}, ("ok", None, 1, 0)),
    "error": ("edit", ERROR, {"status": "error"}, ("failed", None, 0, 0)),
    "error alone": ("edit", ERROR, {}, ("failed", None, 0, 0)),
    "shell": (
        "run_shell_command",
        {"output": "Output: red\nExit Code: 3\nSignal: 0"},
        {"status": "success"},
        ("failed", 3, 0, 0),
    ),
    "newer shell": (
        "run_shell_command",
        OK,
        {"status": "success", "resultDisplay": {"exitCode": 0}},
        ("ok", 0, 0, 0),
    ),
}


@pytest.mark.parametrize(("name", "response", "told", "end"), ENDS.values(), ids=ENDS)
def test_a_call_tells_how_it_ended(
    tmp_path: Path, name: str, response: Any, told: Any, end: Any
) -> None:
    session = read_one(
        tmp_path, user(1, "go"), answer(2, call(name, **FILE)), result(3, response, **told)
    )
    (found,) = calls_of(session)
    assert (found.status, found.exit_code, found.added, found.removed) == end


@pytest.mark.parametrize(
    ("reason", "status", "deed"),
    [
        ("User did not allow tool call", "rejected", "rejection"),
        ("The tool had already completed. User intentionally cancelled.", "failed", "interruption"),
    ],
)
def test_a_refusal_is_told_from_a_cancellation(
    tmp_path: Path, reason: str, status: str, deed: str
) -> None:
    response = {"error": f"[Operation Cancelled] Reason: {reason}"}
    session = read_one(
        tmp_path,
        user(1, "go"),
        answer(2, call("run_shell_command", command="rm x")),
        result(3, response, status="cancelled"),
    )
    assert [each.status for each in calls_of(session)] == [status]
    assert deeds_of(session.turns[0]) == [(deed, "")]


def test_calls_of_the_model_without_a_message_count_and_none_counts_twice(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, "go"),
        spent(2, 30, "s########0"),
        answer(3),
        spent(4, 7, "compress-1"),
        system(5, "chat_compression", compressedHistory=[{"parts": [{"text": "They went."}]}]),
        user(6, "on"),
        answer(7),
        spent(8, 70, "s########1"),
    )
    assert session.usage == Usage(29 + 6 + 69, 6, 0, 3)
    assert session.reported_usage == session.usage
    found = [(turn.compacted, turn.messages[0].summary) for turn in session.turns]
    assert found == [(False, ""), (True, "They went.")]
    assert [each.usage.input for turn in session.turns for each in turn.messages] == [29, 69]


def test_a_subagent_has_a_transcript_beside_and_a_description(tmp_path: Path) -> None:
    side = {"agentId": "scout-c", "isSidechain": True, "model": None}
    agent = tmp_path / "subagents" / "s" / "agent-scout-c.jsonl"
    write_records(
        agent,
        user(1, "count", **side),
        answer(2, **side),
        record(3, "assistant", message={"parts": [call("read_file", file_path="a.py")]}, **side),
        result(4, OK),
    )
    told = {"agentType": "scout", "description": "Count", "toolUseId": "c", "model": "m2"}
    agent.with_name("agent-scout-c.meta.json").write_text(json.dumps(told))
    session = read_one(
        tmp_path,
        user(1, "go"),
        answer(2, call("agent", prompt="count", subagent_type="scout")),
        spent(3, 20, "s#scout-c#0", "scout"),
        result(4, OK, resultDisplay={"type": "task_execution", "subagentName": "scout"}),
    )
    (found,) = session.subagents
    assert (found.id, found.type, found.description) == ("scout-c", "scout", "Count")
    assert (found.prompt, found.call_id, found.place) == ("count", "c", "file")
    (message,) = found.messages  # its call stood in a record of its own
    assert (message.model, message.text, message.usage) == ("m2", "answer 2", Usage(19, 2, 0, 1))
    assert [each.status for each in message.calls] == ["ok"]
    assert session.usage.input == 19 + 19


def test_a_subagent_without_a_transcript_is_what_telemetry_told(tmp_path: Path) -> None:
    used = {
        "event.name": "qwen-code.tool_call",
        "function_name": "read_file",
        "function_args": {"file_path": "a.py"},
        "success": True,
        "prompt_id": "s#scout-x#0",
    }
    session = read_one(
        tmp_path,
        user(1, "go"),
        answer(2, call("agent", prompt="count", description="Count")),
        spent(3, 20, "s#scout-x#0", "scout"),
        system(4, "ui_telemetry", uiEvent=used),
        result(5, OK, resultDisplay={"type": "task_execution", "subagentName": "scout"}),
    )
    (found,) = session.subagents
    assert (found.type, found.prompt, found.call_id) == ("scout", "count", "c")
    assert (found.place, found.description) == ("progress", "Count")
    assert [(each.text, each.calls[0].status) for each in found.messages] == [("said 3", "ok")]
    assert session.usage.input == 19 + 19


def test_records_that_the_person_went_back_before_are_taken_back(tmp_path: Path) -> None:
    session = read_one(
        tmp_path,
        user(1, "one"),
        answer(2),
        user(3, "wrong way"),
        answer(4),
        {**system(5, "rewind", truncatedCount=2), "parentUuid": "u2"},
        user(6, "right way"),
        answer(7),
    )
    found = [(turn.prompt, turn.rewound) for turn in session.turns]
    assert found == [("one", False), ("wrong way", True), ("right way", False)]


def test_a_chain_that_breaks_off_takes_nothing_back(tmp_path: Path) -> None:
    session = read_one(tmp_path, user(1, "one"), answer(2), user(4, "two"), answer(5))
    assert [turn.rewound for turn in session.turns] == [False, False]


def test_masked_ids_and_unknown_records_cost_nothing_else(tmp_path: Path) -> None:
    known = [user(1, "go"), answer(2, call("edit", **FILE)), result(3, OK), answer(4)]
    unknown = [record(5, "hologram"), system(6, "novelty"), user(7, "beep", subtype="novelty")]
    masked = [{**each, "uuid": "x", "parentUuid": "x"} for each in [*known, *unknown]]
    session = read_one(tmp_path, *masked, result(8, OK, callId="nobody"))
    assert (prompts_of(session), texts_of(session)) == (["go"], ["answer 2", "answer 4"])
    assert session.usage == Usage(19 + 39, 4, 0, 2)
    assert [problem.reason for problem in session.problems] == [
        "1 tool results without their calls"
    ]

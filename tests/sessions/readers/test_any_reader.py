"""What holds for every reader but Claude Code's, whatever stands in the files."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.errors import InputError
from debrief.sessions.model import Session
from debrief.sessions.readers import READERS
from debrief.sessions.readers.files import walk

AT = "2026-03-02T10:00:01Z"
MILLISECONDS = 1_772_445_601_000
USAGE = {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 3}
PATCH = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch"
DIFF = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,1 +1,1 @@\n-x\n+y\n"


def codex(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": AT, "type": kind, "payload": payload}


def copilot(kind: str, **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": f"{kind}{sorted(data)}", "timestamp": AT, "data": data}


def droid(role: str, *content: Any) -> dict[str, Any]:
    message = {"role": role, "content": list(content), "usage": USAGE}
    return {"type": "message", "id": f"{role}{content}", "timestamp": AT, "message": message}


EXAMPLES: dict[str, list[Any]] = {
    "droid": [
        {"type": "session_start", "id": "s", "cwd": "/x", "title": "t", "callingSessionId": ""},
        droid("user", {"type": "text", "text": "go"}, {"type": "image"}),
        droid(
            "assistant", {"type": "tool_use", "id": "1", "name": "Edit", "input": {"changes": [{}]}}
        ),
        droid("user", {"type": "tool_result", "tool_use_id": "1", "content": [{"text": "ok"}]}),
        {"type": "agent_turn_outcome", "reason": "cancelled", "timestamp": AT},
        {"type": "compaction_state", "timestamp": AT},
    ],
    "codex": [
        codex("session_meta", {"id": "s", "cwd": "/x", "source": {"subagent": {}}, "git": {}}),
        codex("turn_context", {"model": "m", "cwd": "/x"}),
        codex("event_msg", {"type": "user_message", "message": "go", "images": []}),
        codex("response_item", {"type": "message", "role": "user", "content": [{"text": "go"}]}),
        codex(
            "response_item", {"type": "message", "role": "assistant", "content": [{"text": "a"}]}
        ),
        codex(
            "response_item",
            {"type": "function_call", "name": "apply_patch", "call_id": "1", "arguments": PATCH},
        ),
        codex("event_msg", {"type": "exec_command_end", "call_id": "1", "exit_code": 0}),
        codex(
            "event_msg",
            {
                "type": "patch_apply_end",
                "call_id": "1",
                "success": True,
                "changes": {"a": {"type": "update", "unified_diff": DIFF, "content": "x"}},
            },
        ),
        codex("response_item", {"type": "function_call_output", "call_id": "1", "output": "ok"}),
        codex(
            "event_msg",
            {
                "type": "mcp_tool_call_end",
                "call_id": "2",
                "invocation": {"server": "s", "tool": "t", "arguments": {}},
                "result": {"Ok": {"content": [{"text": "x"}], "isError": False}},
            },
        ),
        codex(
            "event_msg",
            {
                "type": "token_count",
                "info": {"total_token_usage": USAGE, "last_token_usage": USAGE},
            },
        ),
    ],
    "copilot": [
        copilot("session.start", sessionId="s", context={"cwd": "/x", "repository": "a/b"}),
        copilot("user.message", content="go", attachments=[{"type": "image"}]),
        copilot(
            "assistant.message",
            content="a",
            toolRequests=[{"toolCallId": "1", "name": "edit", "arguments": {"path": "a"}}],
            outputTokens=3,
        ),
        copilot("tool.execution_start", toolCallId="1", toolName="edit", arguments={"path": "a"}),
        copilot("permission.requested", requestId="r", permissionRequest={"toolCallId": "1"}),
        copilot("permission.completed", requestId="r", result={"kind": "approved"}),
        copilot("tool.execution_complete", toolCallId="1", result={"detailedContent": DIFF}),
        copilot("subagent.started", toolCallId="1", agentName="x"),
        copilot("session.shutdown", modelMetrics={"m": {"usage": {"inputTokens": 5}}}),
    ],
    "gemini": [
        {
            "sessionId": "s",
            "projectHash": "p",
            "startTime": AT,
            "directories": ["/x"],
            "messages": [
                {"id": "1", "type": "user", "timestamp": AT, "content": [{"text": "go"}]},
                {
                    "id": "2",
                    "type": "gemini",
                    "content": "a",
                    "tokens": {"input": 5, "cached": 3},
                    "toolCalls": [
                        {
                            "id": "c",
                            "name": "replace",
                            "args": {"file_path": "a"},
                            "status": "success",
                            "result": [{"functionResponse": {"response": {"output": "ok"}}}],
                            "resultDisplay": {"fileDiff": DIFF},
                            "timestamp": AT,
                        }
                    ],
                },
            ],
        }
    ],
    "opencode": [
        {
            "info": {"id": "s", "directory": "/x", "time": {"created": MILLISECONDS}},
            "messages": [
                {
                    "info": {"id": "1", "role": "user", "time": {"created": MILLISECONDS}},
                    "parts": [{"type": "text", "text": "go"}, {"type": "file", "mime": "image/x"}],
                },
                {
                    "info": {
                        "id": "2",
                        "role": "assistant",
                        "modelID": "m",
                        "tokens": {"input": 1, "cache": {"read": 2}},
                        "error": {"name": "x"},
                        "path": {"cwd": "/x"},
                    },
                    "parts": [
                        {
                            "type": "tool",
                            "callID": "c",
                            "tool": "multiedit",
                            "state": {
                                "status": "completed",
                                "input": {"filePath": "a", "edits": [{"oldString": "x"}]},
                                "metadata": {"exit": 0, "diff": "", "files": []},
                                "time": {"start": MILLISECONDS, "end": MILLISECONDS},
                            },
                        },
                        {"type": "step-finish", "tokens": {"input": 1}},
                    ],
                },
            ],
        }
    ],
}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every value within ``value``."""
    found = [at] if at else []
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, each in inner:
        found += places(each, (*at, key))
    return found


def write(folder: Path, source: str, records: list[Any]) -> None:
    name = "a.json" if source in ("gemini", "opencode") else "a.jsonl"
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))


def read(folder: Path, source: str) -> tuple[list[Session], list[InputError]]:
    """Return the sessions of a folder and the reasons why others could not be read."""
    reader = READERS[source]
    sessions: list[Session] = []
    refusals: list[InputError] = []
    for transcript in reader.find(walk(folder)):
        try:
            sessions.append(reader.read(transcript))
        except InputError as error:
            refusals.append(error)
    return sessions, refusals


@pytest.mark.parametrize("source", sorted(EXAMPLES))
def test_its_own_example_is_read_by_it_and_by_no_other(source: str, tmp_path: Path) -> None:
    write(tmp_path, source, EXAMPLES[source])
    ((session,), _) = read(tmp_path, source)
    assert session.source == source
    assert session.problems == () or source == "codex" or source == "droid"
    for other in READERS:
        if other != source:
            assert list(READERS[other].find(walk(tmp_path))) == []


@pytest.mark.parametrize("source", sorted(EXAMPLES))
@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_whatever_stands_in_a_field_a_session_or_a_reason_comes_out(
    source: str, data: st.DataObject
) -> None:
    records = json.loads(json.dumps(EXAMPLES[source]))
    for _ in range(data.draw(st.integers(1, 3))):
        way = data.draw(st.sampled_from(places(records)))
        target = records
        try:
            for key in way[:-1]:
                target = target[key]
            target[way[-1]] = data.draw(JSON)
        except (KeyError, IndexError, TypeError):
            continue
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), source, records)
        sessions, refusals = read(Path(name), source)
    assert all(error.reason for error in refusals)
    for session in sessions:
        assert msgspec.json.decode(msgspec.json.encode(session), type=Session) == session
        assert min(msgspec.structs.astuple(session.usage)) >= 0
        assert [turn.number for turn in session.turns if turn.number] == list(
            range(1, session.prompt_count + 1)
        )
        assert session.started <= session.ended


@pytest.mark.parametrize("source", sorted(EXAMPLES))
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_file_cut_anywhere_keeps_what_stands_before_or_is_refused(
    source: str, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), source, EXAMPLES[source])
        (path,) = Path(name).iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        _, refusals = read(Path(name), source)
    assert all(str(path) in str(error) for error in refusals)


def test_every_shared_transcript_is_claimed_by_one_reader_at_most() -> None:
    folder = Path(__file__).parents[3] / "../shared/sessions"
    claims: dict[str, set[str]] = {}
    for source, reader in READERS.items():
        for transcript in reader.find(walk(folder)) if folder.is_dir() else ():
            for path in (transcript.path, *transcript.companions):
                claims.setdefault(path, set()).add(source)
    assert [path for path, sources in claims.items() if len(sources) > 1] == []

"""Kimi Code's sessions: a stream of events for each agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.content import (
    prompts_of,
    write_records,
)

START = 1_772_445_600_000
HEADER = {"type": "metadata", "protocol_version": "1.5", "created_at": START}


def event(second: int, name: str, /, **more: Any) -> dict[str, Any]:
    return {"type": name, "agentId": "main", "time": START + 1000 * second, **more}


def prompt(second: int, text: str, **origin: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return event(second, "turn.prompt", input=content, origin=origin or {"kind": "user"})


def loop(second: int, name: str, /, **more: Any) -> dict[str, Any]:
    return event(second, "context.append_loop_event", event={"type": name, **more})


def step(second: int, *parts: dict[str, Any], tokens: int = 1) -> list[dict[str, Any]]:
    counts = {"inputOther": tokens, "output": 2, "inputCacheRead": 3, "inputCacheCreation": 4}
    said = {"type": "text", "text": f"answer {second}"}
    return [
        loop(second, "step.begin", uuid=f"s{second}"),
        event(second, "llm.request", kind="loop", model="m", modelAlias="k"),
        event(second, "usage.record", model="k", usage=counts, usageScope="turn"),
        loop(second, "content.part", part=said),
        *parts,
        loop(second, "step.end", uuid=f"s{second}", usage=counts),
    ]


def call(second: int, name: str, **given: Any) -> dict[str, Any]:
    return loop(second, "tool.call", toolCallId="c", name=name, args=given)


def result(second: int, output: str, **more: Any) -> dict[str, Any]:
    return loop(second, "tool.result", toolCallId="c", result={"output": output, **more})


def write(folder: Path, agent: str, *records: Any) -> Path:
    path = folder / "wd" / "session_1" / "agents" / agent / "wire.jsonl"
    return write_records(path, HEADER, *records)


def test_subagents_are_filed_beside_and_a_fork_is_the_same_session(tmp_path: Path) -> None:
    start = event(3, "subagent.spawned", subagentId="agent-0", parentToolCallId="c")
    asked = prompt(3, "count", kind="system_trigger", name="subagent")
    kind = event(3, "profile.bind", profileName="coder", systemPrompt="You code.")
    main = [prompt(1, "go"), *step(2, call(2, "Agent", description="Count"), start, result(5, "1"))]
    write(tmp_path, "main", *main)
    write(tmp_path, "agent-0", kind, asked, *step(4))
    state = {"title": "Counting", "cwd": "/w/shop"}
    (tmp_path / "wd" / "session_1" / "state.json").write_text(json.dumps(state))
    fork = tmp_path / "wd" / "session_2"
    (tmp_path / "wd" / "session_1").rename(fork)
    write(tmp_path, "main", *main, prompt(9, "on"))
    write(tmp_path, "agent-0", kind, asked, *step(4))
    found = scan([tmp_path])
    (session,) = read_week(found, "2026-03-02")
    assert isinstance(session, Session)
    assert (prompts_of(session), session.title) == (["go", "on"], "Counting")
    (agent,) = session.subagents
    assert (agent.id, agent.type, agent.description) == ("agent-0", "coder", "Count")
    assert (agent.prompt, agent.call_id) == ("count", "c")
    assert session.usage.input == 2

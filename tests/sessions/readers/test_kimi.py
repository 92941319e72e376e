"""Kimi Code's sessions: a stream of events for each agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers.kimi import READER
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.content import (
    calls_of,
    deeds_of,
    prompts_of,
    read_all,
    texts_of,
    told_in,
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


def read_one(folder: Path, *records: Any) -> Session:
    write(folder, "main", *records)
    (session,) = read_all(READER, folder)
    return session


def test_each_step_is_a_message_with_its_own_tokens(tmp_path: Path) -> None:
    failed = [loop(3, "step.begin", uuid="s3"), event(3, "llm.request", kind="loop", model="m")]
    session = read_one(tmp_path, prompt(1, "go"), *step(2, tokens=5), *failed, *step(4, tokens=7))
    (turn,) = session.turns
    found = [(each.id, each.model, each.text) for each in turn.messages]
    assert found == [("s2", "m", "answer 2"), ("s4", "m", "answer 4")]
    assert [each.usage for each in turn.messages] == [Usage(5, 2, 4, 3), Usage(7, 2, 4, 3)]
    assert (session.id, session.started.timestamp()) == ("session_1", START / 1000)


EDIT = {"path": "a.py", "old_string": "x\n", "new_string": "y\nz\n"}
ENDS: dict[str, tuple[str, Any, dict[str, Any], Any]] = {
    "edit": ("Edit", EDIT, {"output": "ok"}, ("ok", None, 2, 1)),
    "edit, failed": ("Edit", EDIT, {"output": "no", "isError": True}, ("failed", None, 0, 0)),
    "write": ("Write", {"path": "a", "content": "x\n"}, {"output": "ok"}, ("ok", None, 1, 0)),
    "bash": ("Bash", {"command": "ls"}, {"output": "a.py"}, ("ok", 0, 0, 0)),
    "bash, red": (
        "Bash",
        {"command": "pytest"},
        {"output": "red\nCommand failed with exit code: 2.", "isError": True},
        ("failed", 2, 0, 0),
    ),
}


@pytest.mark.parametrize(("name", "given", "told", "end"), ENDS.values(), ids=ENDS)
def test_a_call_tells_how_it_ended(
    tmp_path: Path, name: str, given: Any, told: dict[str, Any], end: Any
) -> None:
    session = read_one(
        tmp_path, prompt(1, "go"), *step(2, call(2, name, **given), result(3, **told))
    )
    (found,) = calls_of(session)
    assert (found.status, found.exit_code, found.added, found.removed) == end


def test_what_was_sent_before_all_else_is_kept(tmp_path: Path) -> None:
    text = "Help.\n```````\n<!-- From: /w/AGENTS.md -->\nBe brief.\n\n<!-- From: /w/a/AGENTS.md -->\nBe exact.\n```````\nMore."
    tools = [{"name": "Read", "description": "Reads.", "parameters": {"type": "object"}}]
    bound = event(0, "profile.bind", systemPrompt=text, environmentDisclosure={"cwd": "/w/shop"})
    later = event(5, "profile.bind", systemPrompt="Another, after a resumption.")
    snapshot = event(1, "llm.tools_snapshot", tools=tools)
    session = read_one(tmp_path, bound, snapshot, prompt(1, "go"), *step(2), later, *step(6))
    assert (session.system_prompt, session.cwd) == (text, "/w/shop")
    assert session.instructions
    assert [(each.path, each.text, each.place) for each in session.instructions] == [
        ("/w/AGENTS.md", "Be brief.", "system"),
        ("/w/a/AGENTS.md", "Be exact.", "system"),
    ]
    assert session.declared_tools
    assert [tool.name for tool in session.declared_tools] == ["Read"]


def test_only_the_persons_own_words_begin_a_turn(tmp_path: Path) -> None:
    told = {
        "role": "user",
        "content": [{"type": "text", "text": "one"}],
        "origin": {"kind": "user"},
    }
    reminder = {**told, "origin": {"kind": "injection", "variant": "date_change"}}
    session = read_one(
        tmp_path,
        prompt(1, "one"),
        event(1, "context.append_message", message=told),
        event(1, "context.append_message", message=reminder),
        *step(2),
        event(3, "turn.steer", input="softly", origin={"kind": "user"}),
        prompt(4, "nightly", kind="cron_job"),
        *step(5),
        prompt(
            6,
            "Tidy: all.",
            kind="skill_activation",
            skillName="tidy",
            skillArgs="all",
            trigger="user-slash",
        ),
        prompt(7, "Loaded.", kind="skill_activation", skillName="tidy", trigger="model-tool"),
        *step(8),
    )
    assert prompts_of(session) == ["one", "/skill:tidy all"]
    assert session.turns[1].expansion == "Tidy: all."
    assert deeds_of(session.turns[0]) == [("remark", "softly")]
    assert told_in(session) == [("program", text) for text in ("one", "nightly", "Loaded.")]


def test_older_streams_have_messages_alone(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "one", "toolCalls": []}
    use = {"type": "function", "id": "c", "name": "Bash", "arguments": '{"command": "ls"}'}
    answer = {
        "role": "assistant",
        "content": [{"type": "text", "text": "look"}],
        "toolCalls": [use],
    }
    came = {"role": "tool", "content": [{"type": "text", "text": "a.py"}], "toolCallId": "c"}
    records = [
        event(at, "context.append_message", message=m) for at, m in enumerate([asked, answer, came])
    ]
    session = read_one(tmp_path, *records)
    assert (prompts_of(session), texts_of(session)) == (["one"], ["look"])
    assert [(each.name, each.status) for each in calls_of(session)] == [("Bash", "ok")]


def test_refusals_interruptions_and_turns_taken_back_are_the_persons(tmp_path: Path) -> None:
    said = {"decision": "rejected", "feedback": "use pytest"}
    session = read_one(
        tmp_path,
        prompt(1, "one"),
        *step(
            2,
            event(2, "permission.record_approval_result", toolCallId="c", result=said),
            call(2, "Bash", command="rm x"),
            result(3, "not run", isError=True),
        ),
        event(4, "turn.cancel", turnId=0, target="active", reason="user_cancelled"),
        event(4, "turn.ended", turnId=0, reason="cancelled"),
        prompt(5, "two"),
        *step(6),
        event(7, "turn.ended", turnId=1, reason="completed"),
        event(8, "context.undo", count=1),
        prompt(9, "three"),
    )
    found = [(turn.prompt, turn.rewound) for turn in session.turns]
    assert found == [("one", False), ("two", True), ("three", False)]
    deeds = [("rejection", "use pytest"), ("interruption", "")]
    assert deeds_of(session.turns[0]) == deeds
    assert [each.status for each in calls_of(session)] == ["rejected"]


def test_a_compactions_own_call_counts_for_the_session_alone(tmp_path: Path) -> None:
    counts = {"inputOther": 50, "output": 5}
    session = read_one(
        tmp_path,
        prompt(1, "one"),
        *step(2, tokens=7),
        event(3, "llm.request", kind="compaction", model="m"),
        event(3, "usage.record", usage=counts, usageScope="session"),
        event(3, "context.apply_compaction", summary="s", contextSummary="They said one."),
        prompt(4, "two"),
        *step(5, tokens=9),
    )
    assert session.usage == Usage(7 + 50 + 9, 2 + 5 + 2, 8, 6)
    assert [each.usage.input for turn in session.turns for each in turn.messages] == [7, 9]
    assert session.turns[1].messages[0].summary == "They said one."
    assert (session.compactions, session.turns[1].compacted) == (1, True)


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


def test_unknown_events_and_masked_ids_cost_only_themselves(tmp_path: Path) -> None:
    records = [prompt(1, "go"), *step(2, call(2, "Bash", command="ls"), result(3, "a")), *step(4)]
    unknown = [event(5, "hologram", x=1), loop(5, "novelty"), {"type": 7}, result(6, "of nothing")]
    for record in records:
        record.get("event", {}).update(uuid="x")
    session = read_one(tmp_path, event(0, "profile.bind", systemPrompt=3), *records, *unknown)
    assert (prompts_of(session), texts_of(session)) == (["go"], ["answer 2", "answer 4"])
    assert session.usage.input == 2

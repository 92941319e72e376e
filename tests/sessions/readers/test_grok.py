"""Sessions of Grok's CLI, with the files beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.readers.grok import READER
from tests.planting import EXAMPLES
from tests.sessions.readers.content import calls_of, prompts_of, read_all, write_records

EXAMPLE = EXAMPLES["grok"].read_text()
ID, CHILD = "01a21c46-3234-73e2-95a9-e99560aad090", "01a21c47-f48c-76d0-9844-a0f93b614a29"
START = 1_772_445_600_000


def told(at: int, began: int = 0, **update: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"agentTimestampMs": START + at}
    if began:
        about["streamStartMs"] = START + began
    return {"method": "session/update", "params": {"update": update, "_meta": about}}


def spent(at: int, given: int, out: int, reason: str = "end_turn") -> dict[str, Any]:
    usage = {"inputTokens": given, "outputTokens": out, "cachedReadTokens": given // 2}
    return told(at, sessionUpdate="turn_completed", stop_reason=reason, usage=usage)


def asked(at: int, number: int) -> dict[str, Any]:
    return told(at, sessionUpdate="user_message_chunk", _meta={"promptIndex": number})


def ended(at: int, id: str, status: str = "completed", **more: Any) -> dict[str, Any]:
    return told(at, sessionUpdate="tool_call_update", toolCallId=id, status=status, **more)


def summary(folder: Path, **more: Any) -> None:
    about = {"info": {"id": folder.name, "cwd": "/home/u/shop"}, **more}
    (folder / "summary.json").write_text(json.dumps(about))


def test_what_is_beside_a_session_tells_times_outcomes_edits_and_tokens(tmp_path: Path) -> None:
    folder = tmp_path / "%2Fhome%2Fu%2Fshop" / ID
    folder.mkdir(parents=True)
    (folder / "chat_history.jsonl").write_text(EXAMPLE)
    summary(folder, generated_title="Totals", created_at="2026-03-02T09:59:59Z")
    bash = {"type": "Bash", "exit_code": 1}
    diff = [{"type": "diff", "path": "/home/u/shop/a.py", "oldText": "x = 1", "newText": "x = 2"}]
    write_records(
        folder / "updates.jsonl",
        asked(0, 0),
        told(1_000, 900, sessionUpdate="tool_call", toolCallId="c1"),
        ended(2_000, "c2", rawOutput=bash),
        ended(2_500, "c1", status="failed"),
        told(3_000, 2_900, sessionUpdate="tool_call", toolCallId="c3"),
        ended(4_000, "c3", content=diff),
        told(4_500, 4_400, sessionUpdate="agent_message_chunk"),
        spent(5_000, 300, 30),
        asked(9_000, 1),
        told(9_500, 9_400, sessionUpdate="agent_message_chunk"),
        spent(9_900, 100, 10, reason="cancelled"),
    )
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.title, session.cwd) == (ID, "Totals", "/home/u/shop")
    assert prompts_of(session) == ["Fix the totals.", "Is all well?"]
    assert [(each.id, each.status, each.exit_code, each.added) for each in calls_of(session)] == [
        ("c1", "failed", None, 0),
        ("c2", "failed", 1, 0),
        ("c3", "ok", None, 1),
    ]
    messages = [message for turn in session.turns for message in turn.messages]
    assert [message.at and message.at.second for message in messages] == [0, 2, 4, 9]
    assert session.ended.isoformat() == "2026-03-02T10:00:09.900000+00:00"
    assert [[deed.kind for deed in turn.interventions] for turn in session.turns] == [
        [],
        ["interruption"],
    ]
    counts = session.usage.input, session.usage.output, session.usage.cache_read
    assert (counts, session.models) == ((200, 40, 200), ("grok-build",))


def test_a_subagents_tokens_count_once_whether_or_not_its_turn_waited_for_it(
    tmp_path: Path,
) -> None:
    for result, expected in (
        (f"There it is.\n\nsubagent_id: {CHILD}\n", 300),
        (f"Subagent started in background.\nsubagent_id: {CHILD}\n", 400),
    ):
        home = tmp_path / str(expected)
        main, child = home / "shop" / ID, home / "shop" / CHILD
        for folder, kind in ((main, {}), (child, {"session_kind": "subagent"})):
            folder.mkdir(parents=True)
            summary(folder, **kind)
        (main / "subagents" / CHILD).mkdir(parents=True)
        (main / "subagents" / CHILD / "meta.json").write_text("{}")
        system, _, prompt = map(json.loads, EXAMPLE.splitlines()[:3])
        given = json.dumps({"prompt": "Look.", "subagent_type": "explore"})
        call = {"id": "s1", "name": "spawn_subagent", "arguments": given}
        answer = {"type": "assistant", "content": "", "tool_calls": [call], "model_id": "m"}
        came = {"type": "tool_result", "tool_call_id": "s1", "content": result}
        write_records(main / "chat_history.jsonl", system, prompt, answer, came)
        look = {"type": "user", "content": [{"type": "text", "text": "Look."}], "prompt_index": 0}
        found = {"type": "assistant", "content": "There it is.", "model_id": "m"}
        write_records(child / "chat_history.jsonl", system, look, found)
        write_records(main / "updates.jsonl", asked(0, 0), spent(9_000, 300, 30))
        write_records(child / "updates.jsonl", asked(1_000, 0), spent(2_000, 100, 10))
        (session,) = read_all(READER, home)
        (agent,) = session.subagents
        assert (agent.id, agent.call_id, agent.type, agent.prompt) == (
            CHILD,
            "s1",
            "explore",
            "Look.",
        )
        assert session.usage.input + session.usage.cache_read == expected

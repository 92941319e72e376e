"""Sessions of Kiro's CLI, with the file beside them."""

from __future__ import annotations

import json
from pathlib import Path

from debrief.sessions.readers.kiro import READER
from tests.planting import EXAMPLES
from tests.sessions.readers.content import calls_of, prompts_of, read_all

EXAMPLE = EXAMPLES["kiro"].read_text()
ID, CHILD = "7787f985-7083-420e-b99d-a74ccce5c00f", "53874b54-cd1a-4be4-b91b-097aee95c608"


def test_the_file_beside_a_session_tells_its_folder_models_tokens_and_end(tmp_path: Path) -> None:
    (tmp_path / f"{ID}.jsonl").write_text(EXAMPLE)
    turns = [
        {
            "message_ids": ["p1", "a1", "r1", "a2"],
            "end_timestamp": "2026-03-02T10:01:30.123456789Z",
            "input_token_count": 90,
            "output_token_count": 4,
            "cache_read_input_token_count": 30,
            "model": "claude-haiku-4.5",
        },
        {"message_ids": ["p2", "a4"], "end_timestamp": "2026-03-02T10:05:00Z", "model": "auto"},
    ]
    state = {"conversation_metadata": {"user_turn_metadatas": turns}}
    about = {"session_id": ID, "cwd": "/home/u/shop", "title": "Totals", "session_state": state}
    (tmp_path / f"{ID}.json").write_text(json.dumps(about))
    of_child = {**about, "parent_session_id": ID, "session_id": CHILD}
    (tmp_path / f"{CHILD}.json").write_text(json.dumps(of_child))
    (tmp_path / f"{CHILD}.jsonl").write_text(EXAMPLE.splitlines()[1] + "\n")
    (session,) = read_all(READER, tmp_path)
    assert (session.id, session.title, session.cwd) == (ID, "Totals", "/home/u/shop")
    assert prompts_of(session) == ["Fix the totals.", "Is all well?"]
    assert [(each.id, each.status, each.exit_code) for each in calls_of(session)] == [
        ("u1", "ok", None),
        ("u2", "failed", 1),
        ("u3", "ok", None),
        ("u4", "rejected", None),
    ]
    models = [message.model for turn in session.turns for message in turn.messages]
    assert models == ["claude-opus-5.5", "claude-haiku-4.5", "claude-opus-5.5"]
    assert (session.usage.input, session.usage.cache_read, session.growth) == (180, 60, 3)
    assert session.ended.isoformat() == "2026-03-02T10:05:00+00:00"
    assert [agent.id for agent in session.subagents] == [CHILD]
    kinds = [[deed.kind for deed in turn.interventions] for turn in session.turns]
    assert (kinds, session.compactions) == ([["rejection", "interruption"], []], 1)

"""Copilot CLI's streams of events beside VS Code's own chats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.readers.vscode import STREAMS
from debrief.sessions.sources import scan
from tests.sessions.readers.content import write_records


def event(second: int, kind: str, **data: Any) -> dict[str, Any]:
    at = f"2026-03-02T10:00:{second:02d}.000Z"
    return {"type": kind, "data": data, "id": f"e{second}", "timestamp": at}


@pytest.mark.parametrize("requests", [[], [{"requestId": "1", "message": {"text": "Fix it"}}]])
def test_a_chat_of_vs_code_and_the_stream_of_its_events_are_one_session(
    requests: list[Any], tmp_path: Path
) -> None:
    chat, stream = tmp_path / "w/chatSessions/p1.json", tmp_path / "w" / STREAMS / "p1.jsonl"
    chat.parent.mkdir(parents=True)
    document = {"version": 3, "responderUsername": "GitHub Copilot", "requests": requests}
    chat.write_text(json.dumps(document))
    started = event(0, "session.start", sessionId="p1", copilotVersion="1.0.64")
    write_records(stream, started, event(1, "user.message", content="Fix it"))
    found = scan([tmp_path])
    (entry,) = [entry for entry in found.entries if entry.session_id]
    assert entry.path == str(chat if requests else stream)
    assert all(entry.session_id or entry.expected for entry in found.entries)
    assert scan([tmp_path], found.entries).entries == found.entries

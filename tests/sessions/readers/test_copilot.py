"""Copilot CLI's streams of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from debrief.sessions.model import Session
from debrief.sessions.readers.copilot import READER
from debrief.sessions.readers.files import walk
from debrief.sessions.readers.vscode import STREAMS
from debrief.sessions.sources import scan
from tests.sessions.readers.content import write_records


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

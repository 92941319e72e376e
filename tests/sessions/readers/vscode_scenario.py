"""Chats of VS Code, as a document or as a log of its changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.sessions.readers.content import write_records

CHAT = "0b5c7a4e-1111-4222-8333-944445555666"
START = 1_772_445_600_000


def ask(text: str, number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "requestId": f"request_{number:08d}-1111-4222-8333-944445555666",
        "timestamp": START + number * 60_000,
        "message": {"text": text, "parts": []},
        "variableData": {"variables": []},
        "response": [],
        "modelId": "copilot/gpt-5",
        **more,
    }


def rounds(*told: tuple[str, list[Any]], **results: str) -> dict[str, Any]:
    """Return a result with the model's rounds, and its calls' results by their ids."""
    listed = [
        {"id": f"r{number}", "response": text, "toolCalls": calls}
        for number, (text, calls) in enumerate(told)
    ]
    answers = {id: {"content": [{"value": text}]} for id, text in results.items()}
    return {"metadata": {"toolCallRounds": listed, "toolCallResults": answers}}


def document(*requests: Any, **more: Any) -> dict[str, Any]:
    head = {"version": 3, "responderUsername": "GitHub Copilot", "initialLocation": "panel"}
    tail = {"sessionId": CHAT, "creationDate": START, "customTitle": "Cart"}
    return {**head, "requests": list(requests), **tail, **more}


def write(folder: Path, *requests: Any, **more: Any) -> Path:
    path = folder / "w" / "chatSessions" / f"{CHAT}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document(*requests, **more), indent=2))
    return path


def log(folder: Path, *entries: Any, first: Any = None) -> Path:
    initial = {"kind": 0, "v": document() if first is None else first}
    return write_records(folder / "w" / "chatSessions" / f"{CHAT}.jsonl", initial, *entries)

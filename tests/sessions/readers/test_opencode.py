"""OpenCode's sessions whose ids or own records are gone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from debrief.sessions.model import Usage
from debrief.sessions.sources import scan
from tests.sessions.readers.content import prompts_of
from tests.sessions.scanned import sessions

START = 1_772_445_600_000


def info(**more: Any) -> dict[str, Any]:
    facts = {"id": "ses_1", "directory": "/home/ann/shop", "title": "Retry", "version": "1.2.0"}
    return {**facts, "time": {"created": START}, **more}


def user(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    time = {"created": START + number * 1000}
    facts = {"id": f"msg_{number}", "role": "user", "time": time, **more}
    return {"info": facts, "parts": list(parts)}


def assistant(number: int, *parts: Any, **more: Any) -> dict[str, Any]:
    time = {"created": START + number * 1000, "completed": START + number * 1000 + 500}
    facts = {"id": f"msg_{number}", "role": "assistant", "time": time, "modelID": "opus", **more}
    return {"info": facts, "parts": list(parts)}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def tokens(fresh: int, output: int, reasoning: int, read: int, write: int) -> dict[str, Any]:
    cache = {"read": read, "write": write}
    return {"input": fresh, "output": output, "reasoning": reasoning, "cache": cache}


def write(folder: Path, *messages: Any, name: str = "export", **facts: Any) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"info": info(**facts), "messages": list(messages)}))
    return path


def test_ids_masked_to_one_word_lose_no_message_and_unite_no_sessions(tmp_path: Path) -> None:
    for name in ("one", "two"):
        messages = [user(1, text(f"Prompt {name}"), id="x")]
        for number in range(2, 1_002):
            spent = tokens(1, 1, 0, 0, 0)
            messages.append(assistant(number, text(f"{number}"), tokens=spent, id="x"))
        write(tmp_path, *messages, name=name, id="x", directory=f"/home/ann/{name}")
    found = sessions(scan([tmp_path]))
    assert [prompts_of(session) for session in found] == [["Prompt one"], ["Prompt two"]]
    assert [session.usage for session in found] == [Usage(1_000, 1_000, 0, 0)] * 2
    assert [session.problems for session in found] == [(), ()]


def test_a_stored_session_without_its_own_record_is_filed_under_its_first_messages_week(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "storage" / "message" / "ses_1"
    folder.mkdir(parents=True)
    for number in (7, 3):
        facts = {"sessionID": "ses_1", **user(number)["info"]}
        (folder / f"msg_{number}.json").write_text(json.dumps(facts))
    (entry,) = (entry for entry in scan([tmp_path]).entries if entry.source)
    assert entry.started == datetime.fromtimestamp(START / 1000 + 3, UTC)

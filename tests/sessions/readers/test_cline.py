"""Cline's sessions, and the tasks of its extension for editors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session
from debrief.sessions.readers.cline import READER
from tests.sessions.readers.content import (
    calls_of,
    read_all,
)

START = 1_772_445_600_000


def user(second: int, *blocks: Any, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": each} if type(each) is str else each for each in blocks]
    return {
        "id": f"u{second}",
        "role": "user",
        "content": content,
        "ts": START + 1000 * second,
        **more,
    }


def use(name: str, **given: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "c", "name": name, "input": given}


# The extension's tasks.

TASK = "1772445600000"
PLACE = "<environment_details>\n# Current Working Directory (/w/shop) Files\na.py\n"
PLACE += '"latestGitCommitHash": "' + "0123456789" * 4 + '"\n</environment_details>'


def said(text: str, index: int, role: str = "user") -> dict[str, Any]:
    content = [{"type": "text", "text": text}, {"type": "text", "text": PLACE}]
    return {"role": role, "content": content if role == "user" else text}


def task(folder: Path, *messages: Any, **beside: Any) -> Session:
    place = folder / TASK
    place.mkdir()
    (place / "api_conversation_history.json").write_text(json.dumps(messages))
    for name, content in beside.items():
        (place / f"{name}.json").write_text(json.dumps(content))
    (session,) = read_all(READER, folder)
    return session


def native(*blocks: Any, tokens: int = 5) -> dict[str, Any]:
    told = {"tokens": {"prompt": tokens, "completion": 2, "cached": 3}}
    return {
        "role": "assistant",
        "content": [{"type": "text", "text": "look"}, *blocks],
        "modelInfo": {"modelId": "m"},
        "metrics": told,
    }


def test_words_that_open_elements_and_close_none_are_read_in_linear_time(tmp_path: Path) -> None:
    diff = "------- SEARCH\n" * 50_000
    calls = native(use("replace_in_file", path="a.py", diff=diff))
    session = task(
        tmp_path,
        said("<task>" * 50_000, 0),
        calls,
        said("[replace_in_file for 'a.py'] Result:\nok", 2),
        said("<read_file><path>" * 50_000, 3, "assistant"),
        said("<user_input>" * 50_000, 4),
    )
    assert [call.name for call in calls_of(session)] == ["replace_in_file"]

"""Tasks of Cline's extension that are long."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.readers.cline import READER
from tests.sessions.readers.content import calls_of, read_all


def said(text: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def test_words_that_open_elements_and_close_none_are_read_in_linear_time(tmp_path: Path) -> None:
    given = {"path": "a.py", "diff": "------- SEARCH\n" * 50_000}
    call = {"type": "tool_use", "id": "c", "name": "replace_in_file", "input": given}
    messages = [
        said("<task>" * 50_000),
        {"role": "assistant", "content": [call]},
        said("[replace_in_file for 'a.py'] Result:\nok"),
        said("<read_file><path>" * 50_000, "assistant"),
        said("<user_input>" * 50_000),
    ]
    path = tmp_path / "1772445600000" / "api_conversation_history.json"
    path.parent.mkdir()
    path.write_text(json.dumps(messages))
    (session,) = read_all(READER, tmp_path)
    assert [call.name for call in calls_of(session)] == ["replace_in_file"]

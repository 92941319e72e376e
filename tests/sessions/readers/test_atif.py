"""Trajectories in ATIF, as the agents that write it really do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from debrief.sessions.model import Session, Usage
from debrief.sessions.readers import READERS
from debrief.sessions.sources import read_week, scan
from tests.sessions.readers.content import read_all, texts_of

ID = "7f3c9a52-6c1e-4c58-9f0a-5b8f4a1f3c77"
PROMPT: dict[str, Any] = {"source": "user", "message": "Fix it."}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": number, **step} for number, step in enumerate(steps, 1)]
    agent = {"name": "terminus-2", "version": "2.0.0", "model_name": "glm-5"}
    head = {"schema_version": "ATIF-v1.6", "session_id": ID, "agent": agent}
    return {**head, "steps": numbered, **more}


def said(text: str, *names: str, second: int = 1, **more: Any) -> dict[str, Any]:
    """Return a step of the agent's with calls, whose ids are their names."""
    calls = [{"tool_call_id": name, "function_name": name, "arguments": {}} for name in names]
    told = {"timestamp": f"2026-03-02T10:00:{second:02d}Z", "source": "agent", "message": text}
    return {**told, **({"tool_calls": calls} if calls else {}), **more}


def tokens(prompt: int, output: int, cached: int = 0, **extra: int) -> dict[str, Any]:
    counts = {"prompt_tokens": prompt, "completion_tokens": output, "cached_tokens": cached}
    return {"metrics": {**counts, "extra": extra}}


def read(folder: Path, *documents: dict[str, Any]) -> Session:
    for number, document in enumerate(documents):
        (folder / f"{number}.json").write_text(json.dumps(document, indent=1))
    (session,) = read_all(READERS["atif"], folder)
    return session


def test_a_trajectory_that_goes_on_in_another_file_is_one_session(tmp_path: Path) -> None:
    copied = {**PROMPT, "is_copied_context": True}
    first = trajectory(
        {**PROMPT, "timestamp": "2026-03-02T10:00:00Z"},
        said("Begun.", **tokens(10, 1)),
        continued_trajectory_ref="b.json",
    )
    then = trajectory(copied, said("Ended.", second=9, **tokens(20, 2)))
    for name, document in (("a", first), ("b", then)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    found = scan([tmp_path])
    (session,) = read_week(found, found.weeks()[0])
    assert isinstance(session, Session)
    assert session.usage == Usage(30, 3)
    assert texts_of(session) == ["Begun.", "Ended."]


def test_subagents_within_subagents_however_deep_are_all_read(tmp_path: Path) -> None:
    document = trajectory(said("0"))
    for depth in range(1, 150):
        document = trajectory(
            said(str(depth)), trajectory_id=f"t{depth % 100}", subagent_trajectories=[document]
        )
    session = read(tmp_path, trajectory(PROMPT, subagent_trajectories=[document]))
    assert len(session.subagents) == 150

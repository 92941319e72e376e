"""Kimi Code's sessions and their forks."""

from __future__ import annotations

from pathlib import Path

from debrief.sessions.sources import scan
from tests.sessions.readers.content import lay, prompts_of
from tests.sessions.scanned import sessions

EXAMPLE = Path(__file__).parent / "examples/kimi/subagents-are-filed-beside-a-session-and-its-fork"


def test_a_fork_is_the_same_session(tmp_path: Path) -> None:
    lay(EXAMPLE / "input", tmp_path)
    (session,) = sessions(scan([tmp_path]))
    assert (prompts_of(session), session.title) == (["go", "on"], "Counting")
    assert [(agent.id, agent.prompt) for agent in session.subagents] == [("agent-0", "count")]
    assert session.usage.input == 2

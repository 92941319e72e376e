"""Subagents: among the session's records, in files beside or below it, or in progress alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.sessions.scenario import MONDAY, SESSION, Log, read, usage


def delegating() -> Log:
    log = Log("Find the cart's total")
    log.calls(
        "t1", "Task", subagent_type="Explore", description="Find it", prompt="Where is total()?"
    )
    return log


def agent_log(agent: str = "a1", session: str = SESSION) -> Log:
    log = Log(session=session, started=MONDAY + timedelta(minutes=5))
    log.user("Where is total()?", isSidechain=True, agentId=agent)
    log.says("In cart.py", id="am1", usage=usage(2, 3), isSidechain=True, agentId=agent)
    log.records[0]["uuid"] = f"root-{agent}"
    log.records[1]["uuid"] = f"answer-{agent}"
    return log


def progress(log: Log, agent: str = "a1") -> None:
    inner_log = agent_log(agent)
    for record in inner_log.records:
        data = {
            "type": "agent_progress",
            "agentId": agent,
            "prompt": "Where is total()?",
            "message": {k: record[k] for k in ("type", "message", "uuid", "timestamp")},
            "normalizedMessages": [],
        }
        log.add("progress", data=data, parentToolUseID="t1")


def test_a_subagents_file_that_cannot_be_read_does_not_cost_the_session(tmp_path: Path) -> None:
    main = delegating().write(tmp_path / f"{SESSION}.jsonl")
    session = read(main, tmp_path / "agent-gone.jsonl")
    assert session.prompt_count == 1
    ((path, reason),) = [(problem.path, problem.reason) for problem in session.problems]
    assert path.endswith("agent-gone.jsonl")
    assert reason.startswith("cannot be read")

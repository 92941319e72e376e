"""Subagents: among the session's records, in files beside or below it, or in progress alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from debrief.sessions.model import Usage
from debrief.sessions.readers.claude_code import READER
from debrief.sessions.readers.files import walk
from tests.sessions.scenario import MONDAY, SESSION, Log, hunk, read, usage


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


def test_a_file_below_the_session_is_found_and_tied_to_its_call(tmp_path: Path) -> None:
    log = delegating()
    log.result("t1", "In cart.py", {"agentId": "a1", "status": "completed"})
    log.write(tmp_path / f"{SESSION}.jsonl")
    agent_log().write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl")
    (transcript,) = READER.find(walk(tmp_path))
    session = READER.read(transcript)
    (agent,) = session.subagents
    found = (agent.id, agent.type, agent.description, agent.place, agent.call_id)
    assert found == ("a1", "Explore", "Find it", "file", "t1")
    assert (agent.prompt, agent.messages[0].text) == ("Where is total()?", "In cart.py")
    assert session.prompt_count == 1
    assert (session.usage, session.api_calls) == (Usage(2, 3), 1)
    assert len(session.transcripts) == 2


def test_a_file_beside_the_session_is_found_by_the_session_it_names(tmp_path: Path) -> None:
    delegating().write(tmp_path / f"{SESSION}.jsonl")
    agent_log().write(tmp_path / "agent-a1.jsonl")
    (transcript,) = READER.find(walk(tmp_path))
    assert transcript.companions == (str(tmp_path / "agent-a1.jsonl"),)
    (agent,) = READER.read(transcript).subagents
    assert agent.call_id == "t1", "tied by its prompt where no record says more"


def test_subagents_of_subagents_folders_are_found_at_any_depth(tmp_path: Path) -> None:
    delegating().write(tmp_path / f"{SESSION}.jsonl")
    deep = tmp_path / SESSION / "subagents" / "workflows" / "w1"
    agent_log("a1").write(deep / "agent-a1.jsonl")
    agent_log("a2").write(deep / "agent-a2.jsonl")
    (transcript,) = READER.find(walk(tmp_path))
    assert [agent.id for agent in READER.read(transcript).subagents] == ["a1", "a2"]


def test_inline_sidechains_are_told_apart_by_their_chains(tmp_path: Path) -> None:
    log = delegating()
    main = log.last
    for number in (1, 2):
        log.last = None
        log.user(f"Part {number}", isSidechain=True)
        log.says(f"Answer {number}", isSidechain=True, usage=usage(1, 1))
        log.calls(f"s{number}", "Edit", file_path="a.py")
        log.records[-1]["isSidechain"] = True
        log.result(
            f"s{number}",
            "ok",
            {"filePath": "a.py", "structuredPatch": [hunk("+x")]},
            isSidechain=True,
        )
    log.last = main
    log.result("t1", "Found")
    session = log.read(tmp_path)
    found = [(a.prompt, a.messages[0].text, a.place) for a in session.subagents]
    assert found == [("Part 1", "Answer 1", "inline"), ("Part 2", "Answer 2", "inline")]
    assert (session.prompt_count, session.lines_added, session.api_calls) == (1, 2, 2)
    assert len(session.turns[0].messages) == 1


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


def test_progress_that_a_file_tells_too_counts_once(tmp_path: Path) -> None:
    log = delegating()
    progress(log)
    main = log.write(tmp_path / f"{SESSION}.jsonl")
    file = agent_log().write(tmp_path / SESSION / "subagents" / "agent-a1.jsonl")
    session = read(main, file)
    (agent,) = session.subagents
    assert (agent.place, agent.call_id, len(agent.messages)) == ("file", "t1", 1)
    assert (session.usage, session.api_calls) == (Usage(2, 3), 1)


def test_subagents_whose_session_is_lost_are_one_session_without_turns(tmp_path: Path) -> None:
    agent_log("a1").write(tmp_path / "agent-a1.jsonl")
    agent_log("a2").write(tmp_path / "agent-a2.jsonl")
    (transcript,) = READER.find(walk(tmp_path))
    session = READER.read(transcript)
    assert (session.id, session.turns) == (SESSION, ())
    found = [(agent.id, agent.place) for agent in session.subagents]
    assert found == [("a1", "file"), ("a2", "file")]


def test_a_subagents_file_that_cannot_be_read_does_not_cost_the_session(tmp_path: Path) -> None:
    main = delegating().write(tmp_path / f"{SESSION}.jsonl")
    session = read(main, tmp_path / "agent-gone.jsonl")
    assert session.prompt_count == 1
    ((path, reason),) = [(problem.path, problem.reason) for problem in session.problems]
    assert path.endswith("agent-gone.jsonl")
    assert reason.startswith("cannot be read")

"""A session of Claude Code that Langfuse's plugin sent is the session of its transcript."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.sessions.model import Session, Turn
from tests.langfuse.plugin import LONGEST, send
from tests.langfuse.scenario import START, calls_of, client_of
from tests.langfuse.server import LangfuseServer
from tests.sessions.scenario import Log, usage
from tests.training.scenario import line_of

REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you "
    "how to proceed, the user said:\nUse the other file."
)


def work() -> Log:
    """A session with a bit of all that a plugin sends."""
    log = Log("Fix the cart, please.", started=START)
    log.says(
        "Let me look.",
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/w/cart.py"}},
        {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "pytest"}},
        usage=usage(10, 20, 30, 40),
    )
    log.result("t1", [{"type": "text", "text": "total = 0"}])
    log.result("t2", "Exit code 2\n1 failed", error=True)
    given = {"file_path": "/w/cart.py", "old_string": "total = 0", "new_string": "total = 1\nx = 2"}
    log.calls("t3", "Edit", **given)
    log.result("t3", "<tool_use_error>File has not been read yet.</tool_use_error>", error=True)
    log.calls("t4", "Edit", **given)
    log.result("t4", "The file /w/cart.py has been updated.")
    log.calls("t5", "Bash", command="true")
    log.result("t5", "")
    log.calls("t6", "Write", file_path="/w/note.md", content="Done\n")
    log.result("t6", REFUSED, error=True)
    log.says("Fixed: the total starts at 1.", usage=usage(1, 2, 3, 4))
    log.user("<command-message>review</command-message>\n<command-name>/review</command-name>")
    log.says("Nothing to complain about.")
    log.user("And the tests?")
    log.calls("t7", "Bash", command="pytest --slow")
    for record in log.records:  # a server counts the tokens itself where none are told
        if record["type"] == "assistant":
            record["message"].setdefault("usage", usage(5, 6))
    return log


def fetched(server: LangfuseServer, log: Log) -> Session:
    return SessionFetcher(client_of(server)).fetch_session(log.session)


@dataclass
class Both:
    transcript: Session
    plugin: Session


def both(log: Log, folder: Path) -> Both:
    with LangfuseServer() as server:
        send(log, server)
        return Both(log.read(folder), fetched(server, log))


def common(session: Session) -> Session:
    """What the plugin sends of a session: its messages' ids, the tool's version are not."""

    def turn_of(turn: Turn) -> Turn:
        messages = tuple(replace(message, id="") for message in turn.messages)
        return replace(turn, messages=messages, ended=None)

    return replace(
        session,
        source="",
        tool_version="",
        transcripts=(),
        digest="",
        turns=tuple(map(turn_of, session.turns)),
    )


def test_it_is_the_session_of_its_transcript(tmp_path: Path) -> None:
    both_ways = both(work(), tmp_path)
    assert common(both_ways.plugin) == common(both_ways.transcript)
    session = both_ways.plugin
    assert (session.source, session.tool, session.task) == ("langfuse", "claude-code", "shop")
    assert (session.cwd, session.branch, session.slash_commands) == ("/home/ann/shop", "main", 1)
    calls = [call for turn in session.turns for call in calls_of(turn)]
    assert [call.status for call in calls] == [
        *("ok", "failed", "failed", "ok", "ok", "rejected", "unanswered")
    ]
    assert [call.result for call in calls][4] == ""
    assert (session.lines_added, session.lines_removed) == (2, 1)
    lines = [line_of(session) for session in (both_ways.transcript, both_ways.plugin)]
    messages = [json.loads(msgspec.json.encode(line))["messages"] for line in lines]
    assert messages[0] == messages[1]


def test_a_subagent_s_work_is_no_turn_of_the_session(
    server: LangfuseServer, tmp_path: Path
) -> None:
    log = Log("Ask somebody.", started=START)
    log.calls("t1", "Task", prompt="Count the files.", description="Look", subagent_type="finder")
    log.result("t1", "Seven.")
    log.says("There are seven.")
    helper = Log("Count the files.", started=START + timedelta(minutes=1))
    helper.calls("t2", "Bash", command="ls")
    helper.result("t2", "a b c d e f g")
    helper.says("Seven.")
    send(log, server, {"t1": helper})
    session = fetched(server, log)
    (agent,) = session.subagents
    assert (agent.call_id, agent.type, agent.prompt) == ("t1", "finder", "Count the files.")
    assert [message.text for message in agent.messages] == ["", "Seven."]
    assert agent.messages[0].calls[0].result == "a b c d e f g"
    assert [message.text for message in session.turns[0].messages] == ["", "There are seven."]


def test_what_no_model_said_counts_as_none(server: LangfuseServer) -> None:
    log = Log("Go.", started=START)
    log.says("Done.", usage=usage(1, 2))
    log.user("Again.")
    log.says("API Error: 500", model="<synthetic>")
    send(log, server)
    session = fetched(server, log)
    assert (session.models, session.api_calls) == (("claude-opus-4-5",), 1)


def test_what_was_cut_is_told(server: LangfuseServer) -> None:
    log = Log("Read it.", started=START)
    log.calls("t1", "Read", file_path="/w/big")
    log.result("t1", "x" * 1_000_000)
    log.says("It is long.")
    send(log, server)
    session = fetched(server, log)
    assert len(calls_of(session.turns[0])[0].result or "") == LONGEST
    (problem,) = session.problems
    assert problem.reason == "1 texts were cut by their sender, at 20000 characters"


def test_a_root_that_has_the_time_of_its_sending_begins_with_its_parts(
    server: LangfuseServer,
) -> None:
    log = work()
    send(log, server)
    server.observations[0]["startTime"] = "2026-11-30T12:00:00.000Z"
    session = fetched(server, log)
    assert [turn.prompt for turn in session.turns] == ["Fix the cart, please.", "And the tests?"]
    assert session.ended < START + timedelta(days=1)


def test_one_that_is_still_arriving_is_waited_for(server: LangfuseServer) -> None:
    log = work()
    send(log, server)
    last = max(n for n, row in enumerate(server.observations) if row["type"] == "GENERATION")
    late = server.observations.pop(last)
    arrived = START + timedelta(hours=1)
    for row in server.observations:
        row["updatedAt"] = arrived.isoformat()
    for wait, is_there in ((timedelta(minutes=1), False), (timedelta(hours=1), True)):
        fetcher = SessionFetcher(client_of(server), now=lambda at=arrived + wait: at)  # type: ignore[misc]
        if is_there:
            assert fetcher.fetch_session(log.session)
            continue
        with pytest.raises(InputError, match="1 of its observations are not there yet"):
            fetcher.fetch_session(log.session)
    server.observations.append({**late, "updatedAt": arrived.isoformat()})
    fetcher = SessionFetcher(client_of(server), now=lambda: arrived)
    assert len(calls_of(fetcher.fetch_session(log.session).turns[-1])) == 1

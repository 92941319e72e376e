"""A session of which only requests to a model are traced, all the way to a line that trains."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from debrief.errors import InputError
from debrief.langfuse.fetcher import SessionFetcher
from debrief.redaction.redactor import Redactor
from debrief.sessions.redaction import redact_session
from debrief.training.cards import SetCounts, training_card
from debrief.training.formats import validate_line
from debrief.training.model import NotTrained, not_trained_in
from debrief.training.options import TrainingOptions
from debrief.training.windows import line_row
from tests.langfuse.scenario import (
    READ,
    TEST,
    DropIn,
    call,
    calls,
    calls_of,
    client_of,
    says,
    tool,
    user,
)
from tests.langfuse.server import LangfuseServer, Mode
from tests.training.scenario import line_of

REDACTOR = Redactor(b"k" * 32)
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


@pytest.mark.parametrize("mode", ["events_only", "old"])
def test_three_traces_of_a_client_become_one_turn_and_one_line(mode: Mode) -> None:
    unused = {"type": "function", "function": {"name": "deploy", "parameters": {"type": "object"}}}
    with LangfuseServer(mode) as server:
        agent = DropIn(server, tools=[READ, TEST, unused])
        agent.asks(
            user("Fix the cart."),
            answers=calls(call("c1", "read_file", path="cart.py", lines=20), text="Let me look."),
        )
        agent.asks(
            tool("c1", f"token = '{SECRET}'"),
            answers=calls(call("c2", "run_tests", folder="tests")),
        )
        agent.asks(tool("c2", "2 passed"), answers=says("Fixed and tested."))
        fetcher = SessionFetcher(
            client_of(server), lambda session: redact_session(session, REDACTOR)
        )
        session = fetcher.fetch_session("s1")
    assert len(session.turns) == 1
    line = line_of(session)
    assert validate_line(msgspec.json.encode(line)) == []
    told: dict[str, Any] = json.loads(msgspec.json.encode(line))
    assert [message["role"] for message in told["messages"]] == [
        *("user", "assistant", "tool", "assistant", "tool", "assistant")
    ]
    first, second = (message["tool_calls"][0] for message in told["messages"][1:4:2])
    assert json.loads(first["function"]["arguments"]) == {"path": "cart.py", "lines": 20}
    assert json.loads(second["function"]["arguments"]) == {"folder": "tests"}
    assert SECRET not in msgspec.json.encode(line).decode()
    assert told["messages"][4]["content"] == "2 passed"
    assert told["messages"][-1]["content"] == "Fixed and tested."
    by_name = {one["function"]["name"]: one["function"] for one in told["tools"]}
    assert set(by_name) == {"read_file", "run_tests", "deploy"}
    for declared in (READ, TEST):
        function = declared["function"]
        assert by_name[function["name"]]["description"] == function["description"]
        assert by_name[function["name"]]["parameters"] == function["parameters"]


def test_a_call_whose_arguments_nobody_tells_is_not_trained_on() -> None:
    """Nor is what is said on the same request: forms without weights leave that out whole."""
    untold = {"id": "c1", "type": "tool_use", "name": "run_tests"}
    with LangfuseServer() as server:
        agent = DropIn(server)
        agent.asks(user("Fix the cart."), answers={"role": "assistant", "content": [untold]})
        answers = calls(call("c2", "read_file", path="cart.py"))
        agent.asks(tool("c1", "1 failed"), answers=answers)
        agent.asks(tool("c2", "total = 0"), answers=says("It starts at 0."))
        with pytest.raises(InputError, match="no answer in full"):
            line_of(SessionFetcher(client_of(server)).fetch_session("s1"))
        agent.asks(user("Thanks."), answers=says("You are welcome."))
        session = SessionFetcher(client_of(server)).fetch_session("s1")
        agent.ran("t1", "run_tests", {"folder": "tests"}, "1 failed")
        told = SessionFetcher(client_of(server)).fetch_session("s1")
    assert [tool_call.input for tool_call in calls_of(session.turns[0])] == [
        "",
        '{"path":"cart.py"}',
    ]
    line = line_of(session)
    assert validate_line(msgspec.json.encode(line)) == []
    answered = [message for message in line.messages if message.role == "assistant"]
    assert [message.weight for message in answered] == [0, 0, 0, UNSET]
    assert not_trained_in(line.messages) == (NotTrained(turn=1, reason="unknown_arguments"),)
    counts = SetCounts()
    counts.add_line(line.metadata, not_trained_in(line.messages), line_row(line, b"", 0))
    card = training_card("t", "a-b", TrainingOptions(), 1, counts, [])
    assert "1: the arguments of a call are not known" in card
    assert calls_of(told.turns[0])[0].input == '{"folder":"tests"}'
    assert not_trained_in(line_of(told).messages) == ()

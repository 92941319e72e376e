"""Tools and models that several integrations observe: each call and each answer told once."""

from __future__ import annotations

import json

from tests.langfuse.scenario import (
    DropIn,
    Recorder,
    call,
    calls,
    calls_of,
    fetched,
    says,
    told,
    tool,
    user,
)
from tests.langfuse.server import LangfuseServer


def test_an_observation_of_a_tool_is_its_call_with_the_result_that_was_seen(
    server: LangfuseServer,
) -> None:
    agent = DropIn(server)
    agent.asks(
        user("Go."),
        answers=calls(call("c1", "run_tests", folder="a"), call("c2", "run_tests", folder="b")),
        trace="t",
    )
    of_b = {"gen_ai.tool.name": "run_tests", "gen_ai.tool.call.id": "c2"}
    failed = {"level": "ERROR", "statusMessage": "exit 1"}
    attributes = {"attributes": json.dumps(of_b)}
    agent.ran("t", "running tool: run_tests", {"folder": "b"}, metadata=attributes, **failed)
    quoted = {"tool_call_id": '"c2"'}
    agent.ran("t", "again", {"folder": "b"}, "other", metadata=quoted)
    seen = agent.ran("t", "run_tests", '{"folder": "a"}', "2 passed, whole")
    agent.asks(tool("c1", "2 pas..."), tool("c2", "exit 1"), answers=says("Done."), trace="t")
    (turn,) = fetched(server).turns
    assert told(turn) == [
        ("run_tests", '{"folder":"a"}', "2 pas...", "ok"),
        ("run_tests", '{"folder":"b"}', "exit 1", "failed"),
    ]
    row = next(row for row in server.observations if row["id"] == seen)
    at = calls_of(turn)[0].at
    assert at is not None
    assert row["startTime"].startswith(at.isoformat()[:19])


def test_calls_alike_are_told_apart_by_what_came_back(server: LangfuseServer) -> None:
    agent = DropIn(server)
    made = [call(f"c{n}", "run_tests", folder="a") for n in range(2)]
    agent.asks(user("Go."), answers=calls(*made), trace="t")
    agent.ran("t", "run_tests", {"folder": "a"}, "2 passed")
    agent.asks(tool("c0", "1 failed"), tool("c1", "2 passed"), answers=says("Done."), trace="t")
    (turn,) = fetched(server).turns
    assert [call.result for call in calls_of(turn)] == ["1 failed", "2 passed"]


def test_a_tool_that_no_model_called_is_a_call_and_a_span_is_none(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=calls(call("c1", "read_file", path="a")), trace="t")
    agent.observe("t", "SPAN", "ChannelWrite", input={"x": 1}, output="y")
    agent.observe("t", "SPAN", "read_file", input={"path": "a", "lines": 100}, output="text")
    agent.ran("t", "format", {"path": "b"}, "formatted")
    (turn,) = fetched(server).turns
    assert told(turn) == [
        ("read_file", '{"path":"a"}', "text", "ok"),
        ("format", '{"path":"b"}', "formatted", "ok"),
    ]


def test_a_tool_that_two_integrations_trace_is_called_once(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=calls(call("c1", "mcp__shop__search", q="x")), trace="t")
    outer = agent.ran("t", "MCP request", {"method": "call"}, "{}")
    inner = agent.ran("t", "search", {"q": "x"}, "found", parentObservationId=outer)
    agent.ran("t", "retry", {}, "found", parentObservationId=inner)
    (turn,) = fetched(server).turns
    assert told(turn) == [("mcp__shop__search", '{"q":"x"}', "found", "ok")]


def test_a_tools_own_data_is_kept_as_it_wrote_it(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    outputs = (
        '{\n  "status": "error", "n": 1.50\n}',
        '"quoted"',
        {"content": [{"type": "text", "text": "no"}], "isError": True},
        {"type": "tool", "content": "gone", "tool_call_id": "x", "status": "error"},
    )
    for number, output in enumerate(outputs):
        recorder.ran("t", f"tool {number}", {}, output)
    (turn,) = fetched(server).turns
    found = [(call.result, call.status) for call in calls_of(turn)]
    assert found == [(outputs[0], "ok"), ("quoted", "ok"), ("no", "failed"), ("gone", "failed")]


def test_spans_are_calls_where_no_model_tells_of_any(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    root = recorder.root("t", "Go.", "Done.")
    recorder.generation("t", "Go.", "Hm.", parentObservationId=root)
    inside = {"parentObservationId": root, "input": {"q": 1}}
    recorder.observe("t", "SPAN", "search", output="found", **inside)
    (turn,) = fetched(server).turns
    assert told(turn) == [("search", '{"q":1}', "found", "ok")]


def test_a_function_traced_by_itself_is_the_call_that_waited(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=calls(call("c1", "read_file", path="a")))
    agent.root("f1", {"args": [], "kwargs": {"path": "a"}}, "text", name="read_file")
    agent.ran("f2", "audit", {"path": "a"}, "noted", isRootObservation=True)
    agent.asks(tool("c1", "te..."), answers=says("Done."))
    (turn,) = fetched(server).turns
    assert told(turn) == [
        ("read_file", '{"path":"a"}', "te...", "ok"),
        ("audit", '{"path":"a"}', "noted", "ok"),
    ]


def test_a_generation_around_another_tells_what_that_one_leaves_out(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    made = [{"toolCallId": "c1", "toolName": "weather", "input": '{"city":"Oslo"}'}]
    usage = {"usageDetails": {"input": 60, "output": 8}, "model": "gpt-5"}
    around = {"isRootObservation": True, **usage}
    loop = recorder.generation("t", '{"prompt":"Is it raining?"}', "It is dry.", **around)
    asked = [{"role": "user", "content": [{"type": "text", "text": "Is it raining?"}]}]
    step = {"parentObservationId": loop, **usage}
    recorder.generation("t", asked, json.dumps(made), **step)
    recorder.ran("t", "weather", {"city": "Oslo"}, {"rain": 0}, parentObservationId=loop)
    recorder.generation("t", asked, "It is dry.", **step)
    session = fetched(server)
    (turn,) = session.turns
    assert turn.prompt == "Is it raining?"
    assert [message.text for message in turn.messages] == ["", "It is dry."]
    assert told(turn) == [("weather", '{"city":"Oslo"}', '{"rain":0}', "ok")]
    assert session.usage.output == 16


def test_requests_that_two_integrations_see_are_told_once(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    first = calls(call("c1", "read_file", path="a"))
    history = [user("Go."), first, tool("c1", "text")]
    root = recorder.root("t", "Go.")
    for given, answer, text in ((history[:1], first, "None"), (history, says("Done."), "Done.")):
        output = {"choices": [{"message": answer}]}
        outer = recorder.generation("t", given, output, parentObservationId=root)
        recorder.generation("t", "user: Go.", text, model="gpt-4o", parentObservationId=outer)
    (turn,) = fetched(server).turns
    assert told(turn) == [("read_file", '{"path":"a"}', "text", "ok")]
    assert [(m.text, m.model) for m in turn.messages] == [("", "gpt-4o"), ("Done.", "gpt-4o")]

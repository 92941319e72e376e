"""Sessions whose models are traced: their calls told once, with what came back from them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.langfuse.scenario import (
    READ,
    TEST,
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


def test_a_trace_that_goes_on_from_a_result_is_no_turn(server: LangfuseServer) -> None:
    agent = DropIn(server)
    first = call("c1", "read_file", path="cart.py")
    agent.asks(user("Fix the cart."), answers=calls(first, text="Let me look."))
    agent.asks(tool("c1", "total = 0"), answers=calls(call("c2", "run_tests", folder="tests")))
    agent.asks(tool("c2", "2 passed"), answers=says("Fixed."))
    session = fetched(server)
    (turn,) = session.turns
    assert turn.prompt == "Fix the cart."
    assert [message.text for message in turn.messages] == ["Let me look.", "", "Fixed."]
    assert told(turn) == [
        ("read_file", '{"path":"cart.py"}', "total = 0", "ok"),
        ("run_tests", '{"folder":"tests"}', "2 passed", "ok"),
    ]
    assert [message.model for message in turn.messages] == ["gpt-4o"] * 3
    assert (session.usage.input, session.usage.output, session.api_calls) == (300, 30, 3)
    assert [one.name for one in session.declared_tools or ()] == ["read_file", "run_tests"]


def read(call_id: str, path: str = "a") -> dict[str, Any]:
    return calls(call(call_id, "read_file", path=path))


REQUESTS: dict[str, tuple[list[list[Any]], list[tuple[str, list[str | None]]]]] = {
    "calls at once get their results in any order": (
        [
            [user("Go."), calls(*(call(f"c{n}", "read_file", path=f"{n}.py") for n in range(3)))],
            [tool("c2", "two"), tool("c0", "zero"), tool("c1", "one"), says("Read.")],
        ],
        [("Go.", ["zero", "one", "two"])],
    ),
    "a call whose result never comes stays unanswered": (
        [[user("Go."), read("c1")], [user("Never mind."), says("As you wish.")]],
        [("Go.", [None]), ("Never mind.", [])],
    ),
    "a result that comes with the next prompt belongs to the turn before": (
        [[user("Go."), read("c1")], [tool("c1", "late"), user("And now?"), says("Done.")]],
        [("Go.", ["late"]), ("And now?", [])],
    ),
    "an id that another trace used before is another call": (
        [
            *([user("1"), read("read_file")], [tool("read_file", "of a"), says("One.")]),
            *([user("2"), read("read_file", "b")], [tool("read_file", "of b"), says("Two.")]),
            *([user("3"), read("read_file")], [tool("read_file", "of a again"), says("Three.")]),
        ],
        [("1", ["of a"]), ("2", ["of b"]), ("3", ["of a again"])],
    ),
    "an id whose first call was never answered answers the second": (
        [
            *([user("1"), read("read_file")], [user("2"), read("read_file")]),
            [tool("read_file", "of a"), says("Done.")],
        ],
        [("1", [None]), ("2", ["of a"])],
    ),
    "the same prompt twice is two turns": (
        [[user("Go on."), says("One.")], [user("Go on."), says("Two.")]],
        [("Go on.", []), ("Go on.", [])],
    ),
}
"""Requests, each what is new in it and the answer; and the turns: prompt and results of calls."""


@pytest.mark.parametrize("name", REQUESTS)
def test_requests_become_turns_with_their_calls(server: LangfuseServer, name: str) -> None:
    requests, expected = REQUESTS[name]
    agent = DropIn(server)
    for *new, answer in requests:
        agent.asks(*new, answers=answer)
    session = fetched(server)
    made = [
        (turn.prompt, [tool_call.result for tool_call in calls_of(turn)]) for turn in session.turns
    ]
    assert made == expected
    for tool_call in (tool_call for turn in session.turns for tool_call in calls_of(turn)):
        assert tool_call.status == ("unanswered" if tool_call.result is None else "ok")


def test_an_id_that_a_history_cut_short_repeats_is_the_latest_call(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("First."), answers=calls(call("c1", "read_file", path="a")))
    agent.asks(tool("c1", "one"), answers=says("One."))
    agent.before = []
    agent.asks(user("Second."), answers=calls(call("c1", "read_file", path="a")))
    agent.asks(tool("c1", "two"), answers=says("Two."))
    assert [calls_of(turn)[0].result for turn in fetched(server).turns] == ["one", "two"]


def test_the_first_result_that_is_told_stands(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=calls(call("c1", "read_file", path="a")))
    agent.asks(tool("c1", "the whole file"), answers=says("Read."))
    agent.before[-2] = tool("c1", "[cleared]")
    agent.asks(user("And?"), answers=says("That was it."))
    assert calls_of(fetched(server).turns[0])[0].result == "the whole file"


def test_words_beside_a_result_are_a_prompt_and_a_programs_reminders_are_none(
    server: LangfuseServer,
) -> None:
    made = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}

    def after(*parts: dict[str, Any]) -> list[dict[str, Any]]:
        answer = {"role": "assistant", "content": [made]}
        return [user("Go."), answer, {"role": "user", "content": [result, *parts]}]

    reminder = {"type": "text", "text": "<system-reminder>\nMind the list.\n</system-reminder>"}
    recorder = Recorder(server)
    first = after()[:1]
    recorder.generation("t1", first, after()[1], model="claude")
    recorder.generation("t2", after(reminder), "Hm.", model="claude")
    stop = {"type": "text", "text": "No, stop."}
    recorder.generation("t3", after(reminder, stop), "Stopped.")
    first_turn, second = fetched(server).turns
    assert told(first_turn) == [("read", "{}", "x", "ok")]
    assert [message.text for message in first_turn.messages] == ["", "Hm."]
    assert second.prompt == "No, stop."


def test_a_history_tells_what_was_said_where_no_output_does(server: LangfuseServer) -> None:
    agent = DropIn(server)
    example = [user("Example."), calls(call("x", "read_file", path="x")), tool("x", "y"), says("z")]
    agent.before += example
    agent.asks(user("Go."), answers=calls(call("c1", "read_file", path="a"), text="Looking."))
    server.observations.clear()
    agent.asks(tool("c1", "text"), answers=says("Done."))
    (turn,) = fetched(server).turns
    assert turn.prompt == "Go."
    assert [message.text for message in turn.messages] == ["Looking.", "Done."]
    assert told(turn) == [("read_file", '{"path":"a"}', "text", "ok")]


def test_other_models_inside_a_turn_are_no_turns(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    recorder.generation("t", [user("Go.")], "A plan.", model="m")
    recorder.generation("t", [user("Context."), user("Follow the plan.")], "Ok.")
    assert [turn.prompt for turn in fetched(server).turns] == ["Go."]


def test_a_request_that_failed_and_was_made_again_is_one_turn(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers="overloaded", level="ERROR", statusMessage="overloaded")
    agent.asks(answers=says("Done."))
    (turn,) = fetched(server).turns
    assert [message.text for message in turn.messages] == ["", "Done."]


def test_a_trace_of_which_nothing_is_told_is_no_turn(server: LangfuseServer) -> None:
    agent = DropIn(server)
    agent.asks(user("Go."), answers=says("Done."))
    agent.observe("t2", "GENERATION", "raw", model="gpt-4o", isRootObservation=True)
    (turn,) = fetched(server).turns
    assert [message.text for message in turn.messages] == ["Done.", ""]


def test_pictures_are_counted_and_never_written_out(server: LangfuseServer) -> None:
    data = "data:image/png;base64," + "iVBORw0KGgo" * 50
    content = [
        {"type": "text", "text": "What is wrong here?"},
        {"type": "image_url", "image_url": {"url": data}},
        {"type": "input_audio", "input_audio": {"data": "UklGR" * 50, "format": "wav"}},
        {"type": "blob", "modality": "image", "content": "iVBORw0KGgo" * 50},
    ]
    recorder = Recorder(server)
    recorder.generation("t1", [{"role": "user", "content": content}])
    recorder.root("t2", {"picture": data})
    recorder.root("t3", f"see {data} there")
    shown, alone, inside = fetched(server).turns
    assert (shown.prompt, shown.images) == ("What is wrong here?", 2)
    assert alone.prompt == "[image/png]"
    assert inside.prompt == "see [image/png] there"


GIVEN: dict[str, tuple[object, str]] = {
    "argument": ({"args": ["Fix it."], "kwargs": {}}, "Fix it."),
    "named argument": ({"args": [], "kwargs": {"user": 7, "question": "Why?"}}, "Why?"),
    "messages among arguments": ({"args": [7, [user("Fix it.")]], "kwargs": {}}, "Fix it."),
    "tools that the server put in": ({"prompt": "Fix it.", "tools": [READ]}, "Fix it."),
    "tools alone": ({"tools": [READ, TEST]}, ""),
    "system beside": ({"system": "Be kind.", "prompt": "Fix it."}, "Fix it."),
    "instructions beside": ({"input": "Fix it.", "instructions": "Be kind."}, "Fix it."),
    "agent kit": (
        {"new_message": {"role": "user", "parts": [{"text": "hi"}]}, "user_id": "u"},
        "hi",
    ),
    "nested": ([[{"type": "human", "content": "Fix it."}]], "Fix it."),
    "beginning of an answer": ([user("a"), says("{"), user("Fix it."), says("{")], "Fix it."),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_prompt_is_found_in_what_a_root_was_given(server: LangfuseServer, name: str) -> None:
    given, prompt = GIVEN[name]
    Recorder(server).root("t1", given)
    assert [turn.prompt for turn in fetched(server).turns] == [prompt]


def test_a_roots_data_is_no_message_where_models_spoke(server: LangfuseServer) -> None:
    recorder = Recorder(server)
    root = recorder.root("t", "Go.", {"ok": True, "n": 3})
    recorder.generation("t", "Go.", "Done.", parentObservationId=root)
    (turn,) = fetched(server).turns
    assert [message.text for message in turn.messages] == ["Done."]

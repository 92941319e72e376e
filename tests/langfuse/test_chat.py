"""What was said and what came back from calls, as every vendor and tracer writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from debrief.langfuse.messages import TracedMessage, messages_by, messages_to
from debrief.langfuse.parts import ReportedCall, ReportedResult

HERE = Path(__file__).parent
ANSWERS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "answers.yaml").read_text())
RESULTS: dict[str, dict[str, Any]] = yaml.safe_load((HERE / "results.yaml").read_text())


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "written", [lambda value: value, json.dumps, lambda v: json.dumps(json.dumps(v))]
)
def test_a_models_call_is_read_in_every_vendors_words(name: str, written: Any) -> None:
    answer = ANSWERS[name]
    said = messages_by(written(answer["output"]))
    arguments = '{"path":"a"}'
    assert [message.role for message in said] == ["assistant"] * len(said)
    assert "".join(message.text for message in said) == answer.get("text", "")
    calls = [call for message in said for call in message.calls]
    assert calls == [ReportedCall(answer.get("id", "c1"), "read", arguments, arguments)]


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_in_every_vendors_words(name: str) -> None:
    (said,) = messages_to([RESULTS[name]["message"]])
    assert (said.text, said.calls) == ("", ())
    assert said.results == (ReportedResult(*RESULTS[name]["result"]),)


def test_instructions_are_the_systems_wherever_they_stand() -> None:
    expected = (
        TracedMessage(role="system", text="Be kind."),
        TracedMessage(role="user", text="hi"),
    )
    parts = [{"role": "user", "parts": [{"text": "hi"}]}]
    for request in (
        [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        {"system": "Be kind.", "messages": [{"role": "user", "content": "hi"}]},
        {"system": [{"type": "text", "text": "Be kind."}], "prompt": "hi"},
        {"instructions": "Be kind.", "input": "hi"},
        {"contents": parts, "config": {"system_instruction": "Be kind."}},
        {"contents": parts, "systemInstruction": {"parts": [{"text": "Be kind."}]}},
    ):
        assert messages_to(request) == expected, request


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "hello",
        "{broken",
        3,
        [],
        {},
        [1, 2],
        {"choices": 3, "cost": 1},
        [{"id": "1", "name": "web-search", "input": {}}],
        [{"type": "function", "function": {"name": "read", "parameters": {}}}],
        [{"type": "function", "name": "read", "parameters": {}}],
        {"messages": "none"},
        [{"role": "critic", "content": "x"}],
        [{"role": ["user"], "content": "x", "type": {}}],
    ],
    ids=repr,
)
def test_what_is_no_conversation_says_nothing(value: object) -> None:
    assert messages_to(value) == ()
    assert messages_by(value) == ()


def test_words_stay_as_they_were_said_even_where_they_are_json() -> None:
    text = '{"answer": "2", "why": "because"}'
    assert messages_by({"role": "assistant", "content": text}) == (
        TracedMessage(role="assistant", text=text),
    )
    assert messages_to([{"role": "user", "content": text}]) == (
        TracedMessage(role="user", text=text),
    )


def test_a_refusal_is_words() -> None:
    refused = TracedMessage(role="assistant", text="I will not.")
    assert messages_by({"role": "assistant", "content": None, "refusal": "I will not."}) == (
        refused,
    )
    part = {"type": "refusal", "refusal": "I will not."}
    assert messages_by({"role": "assistant", "content": [part]}) == (refused,)


def test_of_several_answers_the_first_counts() -> None:
    choices = [{"message": {"role": "assistant", "content": text}} for text in ("one", "two")]
    assert messages_by({"choices": choices}) == (TracedMessage(role="assistant", text="one"),)


def test_a_tool_on_the_models_own_server_brings_its_result_along() -> None:
    item = {"type": "mcp_call", "id": "m1", "name": "search", "arguments": "{}", "output": "found"}
    (said,) = messages_by([item])
    found = (said.calls[0].name, said.results)
    assert found == ("search", (ReportedResult("m1", "search", "found"),))
    (failed,) = messages_by([{**item, "output": None, "error": "away"}])
    assert failed.results == (ReportedResult("m1", "search", "away", "failed"),)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"b": 1, "a": [2]}', '{"b":1,"a":[2]}'),
        ({"a": 1}, '{"a":1}'),
        ("", "{}"),
        (None, "{}"),
        ("*** Begin Patch", '{"input":"*** Begin Patch"}'),
        ('{"cut": "sho', '{"input":"{\\"cut\\": \\"sho"}'),
        ("[1, 2]", '{"input":[1,2]}'),
        ('{"a": NaN}', '{"a":null}'),
        ('{"a": "\\ud800"}', '{"a":"\ufffd"}'),
    ],
)
def test_arguments_are_an_object_whatever_came(arguments: object, told: str) -> None:
    entry = {"id": "c1", "function": {"name": "read", "arguments": arguments}}
    (said,) = messages_by({"role": "assistant", "tool_calls": [entry]})
    assert said.calls[0].arguments == told

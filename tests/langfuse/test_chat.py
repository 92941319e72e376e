"""What was said, in the words of every vendor and of what traces them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debrief.langfuse.chat import said_by, said_to
from debrief.langfuse.messages import Said
from debrief.langfuse.parts import ReportedCall

READ = ReportedCall("c1", "read", '{"path":"a"}', '{"path":"a"}')
NAMELESS = ReportedCall("", "read", '{"path":"a"}', '{"path":"a"}')
FUNCTION = {"name": "read", "arguments": '{"path": "a"}'}
ENTRY = {"id": "c1", "type": "function", "function": FUNCTION}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "x"}

ANSWERS: dict[str, tuple[Any, str, ReportedCall]] = {
    "OpenAI": ({"role": "assistant", "content": None, "tool_calls": [ENTRY]}, "", READ),
    "OpenAI, with words": (
        {"role": "assistant", "content": "Looking.", "tool_calls": [ENTRY], "refusal": None},
        "Looking.",
        READ,
    ),
    "OpenAI, the whole response": (
        {
            "id": "x",
            "choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [ENTRY]}}],
        },
        "",
        READ,
    ),
    "OpenAI, before tools": (
        {"role": "assistant", "content": None, "function_call": FUNCTION},
        "",
        NAMELESS,
    ),
    "OpenAI, a tool of one's own": (
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c1", "type": "custom", "custom": {"name": "read", "input": {"path": "a"}}}
            ],
        },
        "",
        READ,
    ),
    "Responses, items": (
        [
            {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
            },
            {
                "type": "function_call",
                "id": "fc",
                "call_id": "c1",
                **FUNCTION,
                "status": "completed",
            },
        ],
        "Looking.",
        READ,
    ),
    "Responses, one item": (
        {"type": "function_call", "id": "fc", "call_id": "c1", **FUNCTION},
        "",
        READ,
    ),
    "Responses, the whole response": (
        {"object": "response", "output": [{"type": "function_call", "call_id": "c1", **FUNCTION}]},
        "",
        READ,
    ),
    "Anthropic": (
        {
            "role": "assistant",
            "content": [
                THOUGHT,
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
            ],
        },
        "Looking.",
        READ,
    ),
    "Anthropic, the content alone": (
        [
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        ],
        "Looking.",
        READ,
    ),
    "LangChain": (
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {"name": "read", "args": {"path": "a"}, "id": "c1", "type": "tool_call"}
            ],
            "additional_kwargs": {"tool_calls": [ENTRY]},
        },
        "",
        READ,
    ),
    "LangChain on Anthropic": (
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}],
            "tool_calls": [{"name": "read", "args": {"path": "a"}, "id": "c1"}],
        },
        "",
        READ,
    ),
    "LangChain, what stands beside alone": ({"tool_calls": [ENTRY], "refusal": None}, "", READ),
    "LangChain, its own form": (
        {
            "messages": [
                {
                    "type": "ai",
                    "content": "Looking.",
                    "tool_calls": [{"name": "read", "args": {"path": "a"}, "id": "c1"}],
                }
            ]
        },
        "Looking.",
        READ,
    ),
    "LangChain, serialised": (
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain_core", "messages", "AIMessage"],
            "kwargs": {"content": "Looking.", "additional_kwargs": {"tool_calls": [ENTRY]}},
        },
        "Looking.",
        READ,
    ),
    "AI SDK, with words": (
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": json.dumps(
                [{"toolCallId": "c1", "toolName": "read", "args": '{"path":"a"}'}]
            ),
        },
        "Looking.",
        READ,
    ),
    "AI SDK, calls alone": (
        [{"toolCallId": "c1", "toolName": "read", "input": '{"path":"a"}'}],
        "",
        READ,
    ),
    "AI SDK, parts": (
        {
            "role": "assistant",
            "content": [
                {"type": "reasoning", "text": "Hm."},
                {
                    "type": "tool-call",
                    "toolCallId": "c1",
                    "toolName": "read",
                    "input": {"path": "a"},
                },
            ],
        },
        "",
        READ,
    ),
    "OpenTelemetry": (
        [
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "Hm."},
                    {"type": "text", "content": "Looking."},
                    {"type": "tool_call", "id": "c1", "name": "read", "arguments": {"path": "a"}},
                ],
                "finish_reason": "tool_call",
            }
        ],
        "Looking.",
        READ,
    ),
    "OpenTelemetry, an event": (
        {"index": 0, "message": {"role": "assistant", "tool_calls": [ENTRY]}, "finish_reason": "x"},
        "",
        READ,
    ),
    "OpenInference": (
        [
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [{"tool_call": {"id": "c1", "function": FUNCTION}}],
                }
            }
        ],
        "",
        READ,
    ),
    "Semantic Kernel": (
        {
            "gen_ai.event.content": json.dumps(
                {
                    "index": 0,
                    "message": {"role": "Assistant", "content": "Looking.", "tool_calls": [ENTRY]},
                }
            )
        },
        "Looking.",
        READ,
    ),
    "Gemini": (
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"text": "Looking."},
                            {"functionCall": {"name": "read", "args": {"path": "a"}}},
                        ],
                    }
                }
            ]
        },
        "Looking.",
        NAMELESS,
    ),
    "Agent Development Kit": (
        {
            "content": {
                "parts": [{"function_call": {"id": "c1", "name": "read", "args": {"path": "a"}}}],
                "role": "model",
            },
            "finish_reason": "STOP",
        },
        "",
        READ,
    ),
    "Bedrock": (
        {
            "output": {
                "message": {
                    "role": "assistant",
                    "content": [
                        {"text": "Looking."},
                        {"toolUse": {"toolUseId": "c1", "name": "read", "input": {"path": "a"}}},
                    ],
                }
            }
        },
        "Looking.",
        READ,
    ),
    "Genkit": (
        {
            "role": "model",
            "content": [{"toolRequest": {"ref": "c1", "name": "read", "input": {"path": "a"}}}],
        },
        "",
        READ,
    ),
    "Strands, an event": (
        {
            "finish_reason": "tool_use",
            "message": json.dumps(
                [
                    {"text": "Looking."},
                    {"toolUse": {"toolUseId": "c1", "name": "read", "input": {"path": "a"}}},
                ]
            ),
        },
        "Looking.",
        READ,
    ),
    "LlamaIndex": (
        {
            "message": {
                "role": "assistant",
                "additional_kwargs": {},
                "blocks": [
                    {"block_type": "text", "text": "Looking."},
                    {
                        "block_type": "tool_call",
                        "tool_call_id": "c1",
                        "tool_name": "read",
                        "tool_kwargs": {"path": "a"},
                    },
                ],
            }
        },
        "Looking.",
        READ,
    ),
    "Haystack": (
        {
            "role": "assistant",
            "content": [
                {"text": "Looking."},
                {"tool_call": {"id": "c1", "tool_name": "read", "arguments": {"path": "a"}}},
            ],
        },
        "Looking.",
        READ,
    ),
    "Koog": (
        [{"role": "assistant", "content": json.dumps([ENTRY]), "finish_reason": "tool_calls"}],
        "",
        READ,
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize(
    "written", [lambda value: value, json.dumps, lambda v: json.dumps(json.dumps(v))]
)
def test_a_models_call_is_read_in_every_vendors_words(name: str, written: Any) -> None:
    output, text, call = ANSWERS[name]
    said = said_by(written(output))
    assert [one.role for one in said] == ["assistant"] * len(said)
    assert "".join(one.text for one in said) == text
    assert [told for one in said for told in one.calls] == [call]


def test_instructions_are_the_systems_wherever_they_stand() -> None:
    expected = (Said(role="system", text="Be kind."), Said(role="user", text="hi"))
    parts = [{"role": "user", "parts": [{"text": "hi"}]}]
    for request in (
        [{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "hi"}],
        {"system": "Be kind.", "messages": [{"role": "user", "content": "hi"}]},
        {"system": [{"type": "text", "text": "Be kind."}], "prompt": "hi"},
        {"instructions": "Be kind.", "input": "hi"},
        {"contents": parts, "config": {"system_instruction": "Be kind."}},
        {"contents": parts, "systemInstruction": {"parts": [{"text": "Be kind."}]}},
    ):
        assert said_to(request) == expected, request


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
    assert said_to(value) == ()
    assert said_by(value) == ()


def test_words_stay_as_they_were_said_even_where_they_are_json() -> None:
    text = '{"answer": "2", "why": "because"}'
    assert said_by({"role": "assistant", "content": text}) == (Said(role="assistant", text=text),)
    assert said_to([{"role": "user", "content": text}]) == (Said(role="user", text=text),)


def test_a_refusal_is_words() -> None:
    refused = Said(role="assistant", text="I will not.")
    assert said_by({"role": "assistant", "content": None, "refusal": "I will not."}) == (refused,)
    part = {"type": "refusal", "refusal": "I will not."}
    assert said_by({"role": "assistant", "content": [part]}) == (refused,)


def test_of_several_answers_the_first_counts() -> None:
    choices = [{"message": {"role": "assistant", "content": text}} for text in ("one", "two")]
    assert said_by({"choices": choices}) == (Said(role="assistant", text="one"),)

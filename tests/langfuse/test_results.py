"""What came back from calls, in the words of every vendor and of what traces them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from debrief.langfuse.chat import said_by, said_to
from debrief.langfuse.parts import ReportedResult

RESULTS: dict[str, tuple[Any, ReportedResult]] = {
    "OpenAI": (
        {"role": "tool", "tool_call_id": "c1", "content": "text"},
        ReportedResult("c1", "", "text"),
    ),
    "OpenAI, parts": (
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "te"}, {"type": "text", "text": "xt"}],
        },
        ReportedResult("c1", "", "te\nxt"),
    ),
    "OpenAI, an object": (
        {"role": "tool", "tool_call_id": "c1", "content": {"rain": 0}},
        ReportedResult("c1", "", '{"rain":0}'),
    ),
    "OpenAI, nothing": (
        {"role": "tool", "tool_call_id": "c1", "content": None},
        ReportedResult("c1", "", ""),
    ),
    "OpenAI, before tools": (
        {"role": "function", "name": "read", "content": "text"},
        ReportedResult("", "read", "text"),
    ),
    "Responses": (
        {"type": "function_call_output", "call_id": "c1", "output": "text"},
        ReportedResult("c1", "", "text"),
    ),
    "Anthropic": (
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "text"}],
        },
        ReportedResult("c1", "", "text"),
    ),
    "Anthropic, failed": (
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "gone", "is_error": True}
            ],
        },
        ReportedResult("c1", "", "gone", "failed"),
    ),
    "Anthropic, a picture": (
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [
                        {"type": "text", "text": "seen"},
                        {"type": "image", "source": {"type": "base64", "data": "iVBOR"}},
                    ],
                }
            ],
        },
        ReportedResult("c1", "", "seen\n[image]"),
    ),
    "LangChain": (
        {
            "type": "tool",
            "name": "read",
            "tool_call_id": "c1",
            "id": None,
            "content": "gone",
            "status": "error",
        },
        ReportedResult("c1", "read", "gone", "failed"),
    ),
    "AI SDK": (
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "read",
                    "output": {"type": "text", "value": "text"},
                }
            ],
        },
        ReportedResult("c1", "read", "text"),
    ),
    "AI SDK, failed": (
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "read",
                    "output": {"type": "error-text", "value": "gone"},
                }
            ],
        },
        ReportedResult("c1", "read", "gone", "failed"),
    ),
    "AI SDK, refused": (
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "read",
                    "output": {"type": "execution-denied", "reason": "no"},
                }
            ],
        },
        ReportedResult("c1", "read", "no", "rejected"),
    ),
    "OpenTelemetry": (
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "c1", "response": {"rain": 0}}],
        },
        ReportedResult("c1", "", '{"rain":0}'),
    ),
    "Pydantic AI": (
        {
            "role": "user",
            "parts": [{"type": "tool_call_response", "id": "c1", "name": "read", "result": "text"}],
        },
        ReportedResult("c1", "read", "text"),
    ),
    "Microsoft's agents": (
        {
            "role": "tool",
            "parts": [
                {
                    "type": "tool_call_response",
                    "id": "c1",
                    "response": json.dumps(
                        {"type": "function_result", "call_id": "c1", "result": "text"}
                    ),
                }
            ],
        },
        ReportedResult("c1", "", "text"),
    ),
    "Gemini": (
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "read", "response": {"result": "text"}}}],
        },
        ReportedResult("", "read", "text"),
    ),
    "Strands": (
        {
            "role": "tool",
            "id": "c1",
            "content": json.dumps(
                [{"toolResult": {"toolUseId": "c1", "content": [{"text": "x"}]}}]
            ),
        },
        ReportedResult("c1", "", "x"),
    ),
    "Haystack": (
        {
            "role": "tool",
            "content": [
                {
                    "tool_call_result": {
                        "result": "text",
                        "origin": {"id": "c1", "tool_name": "read", "arguments": {}},
                        "error": False,
                    }
                }
            ],
        },
        ReportedResult("c1", "read", "text"),
    ),
    "a role by its library's name": (
        {"role": "MessageRole.TOOL", "tool_call_id": "c1", "content": "text"},
        ReportedResult("c1", "", "text"),
    ),
    "Bedrock": (
        {
            "role": "user",
            "content": [
                {
                    "toolResult": {
                        "toolUseId": "c1",
                        "status": "error",
                        "content": [{"json": {"no": 1}}],
                    }
                }
            ],
        },
        ReportedResult("c1", "", '{"no":1}', "failed"),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_read_in_every_vendors_words(name: str) -> None:
    message, result = RESULTS[name]
    (said,) = said_to([message])
    assert (said.text, said.calls, said.results) == ("", (), (result,))


def test_a_tool_on_the_models_own_server_brings_its_result_along() -> None:
    item = {"type": "mcp_call", "id": "m1", "name": "search", "arguments": "{}", "output": "found"}
    (said,) = said_by([item])
    assert (said.calls[0].name, said.results) == (
        "search",
        (ReportedResult("m1", "search", "found"),),
    )
    (failed,) = said_by([{**item, "output": None, "error": "away"}])
    assert failed.results == (ReportedResult("m1", "search", "away", "failed"),)

"""Tools as their sources declare them, in any vendor's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.sessions.model import DeclaredTool
from debrief.sessions.readers.values import declared_tools, unique

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
}
NAMED = {"name": "read", "description": "Reads a file."}
TOLD = DeclaredTool(**NAMED, parameters=json.dumps(SCHEMA, separators=(",", ":")))

SHAPES: dict[str, Any] = {
    "OpenAI": [{"type": "function", "function": {**NAMED, "parameters": SCHEMA, "strict": True}}],
    "OpenAI, flat": [{"type": "function", **NAMED, "parameters": SCHEMA}],
    "Anthropic": [{**NAMED, "input_schema": SCHEMA}],
    "Model Context Protocol": {"tools": [{**NAMED, "inputSchema": SCHEMA}]},
    "Gemini": [{"functionDeclarations": [{**NAMED, "parametersJsonSchema": SCHEMA}]}],
    "Gemini, by its library": [{"function_declarations": [{**NAMED, "parameters": SCHEMA}]}],
    "Bedrock": [{"toolSpec": {**NAMED, "inputSchema": {"json": SCHEMA}}}],
    "Codex, a namespace": [{"name": "files", "tools": [{**NAMED, "parameters": SCHEMA}]}],
    "Pydantic AI": [{**NAMED, "parameters_json_schema": SCHEMA}],
    "AI SDK": [json.dumps({**NAMED, "inputSchema": {"jsonSchema": SCHEMA}})],
    "by name": {"read": {"description": NAMED["description"], "parameters": SCHEMA}},
    "by name, as text": {
        "read": json.dumps({"description": NAMED["description"], "parameters": json.dumps(SCHEMA)})
    },
    "one alone": {**NAMED, "parameters": SCHEMA},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_tool_is_read_in_every_vendors_words(shape: str) -> None:
    assert declared_tools(SHAPES[shape]) == (TOLD,)
    assert declared_tools(json.dumps(SHAPES[shape])) == (TOLD,)


@pytest.mark.parametrize(
    "tool",
    [{"type": "custom", **NAMED}, {"type": "custom", "custom": {**NAMED, "format": {}}}],
    ids=["flat", "wrapped"],
)
def test_a_tool_that_takes_free_text_takes_it_as_input(tool: object) -> None:
    (told,) = declared_tools([tool])
    assert json.loads(told.parameters)["required"] == ["input"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        "",
        "no JSON",
        [],
        {},
        [None, 3, "read", []],
        [{"type": "web_search_preview"}],
        [{"name": ""}, {"name": 3}, {"function": {}}],
        {"a": {"b": 1}, "c": 2},
    ],
    ids=repr,
)
def test_what_declares_no_tool_is_passed_over(value: object) -> None:
    assert declared_tools(value) == ()


def test_a_tool_is_told_once_and_with_its_arguments_where_anyone_tells_them() -> None:
    bare, other = DeclaredTool(name="read"), DeclaredTool(name="write")
    assert unique([bare, other, TOLD, bare]) == (TOLD, other)
    assert declared_tools([NAMED, {**NAMED, "parameters": SCHEMA}]) == (TOLD,)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["name", "function", "tools", "parameters", "schema", "custom", "json"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)


@given(value=ANY_JSON | ANY_JSON.map(json.dumps))
@settings(max_examples=20, deadline=None)
def test_whatever_is_declared_has_a_name_and_a_schema_that_is_an_object(value: object) -> None:
    tools = declared_tools(value)
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert tool.name.strip()
        assert not tool.parameters or isinstance(json.loads(tool.parameters), dict)

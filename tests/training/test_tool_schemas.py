from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from debrief.sessions.model import DeclaredTool
from debrief.sessions.readers.documents import mend_text
from debrief.training.conversations import encode, function_name
from debrief.training.formats import MOST_TOOLS, TABLES, tool_schemas, without_uncalled
from debrief.training.model import ToolParameters
from tests.training.strategies import INPUTS, JSON, NAMES


def parameters(agent: str, *calls: tuple[str, dict[str, object]]) -> dict[str, ToolParameters]:
    return {tool.function.name: tool.function.parameters for tool in tool_schemas(agent, calls)}


def test_a_session_of_one_tool_gets_a_second_one_that_its_agent_has() -> None:
    assert set(parameters("claude-code", ("Bash", {"command": "ls"}))) == {"Bash", "Read"}


def test_a_session_of_many_tools_gets_none_that_it_did_not_use() -> None:
    assert set(parameters("claude-code", ("Bash", {}), ("Edit", {}))) == {"Bash", "Edit"}


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from(
        ["claude-code", "droid", "codex", "gemini-cli", "opencode", "recorder", "other"]
    ),
    st.lists(st.tuples(NAMES, st.dictionaries(st.text(max_size=8), JSON, max_size=3)), max_size=6),
)
def test_every_line_shows_a_loader_that_properties_differ(
    agent: str, calls: list[tuple[str, dict[str, object]]]
) -> None:
    found = [tool.function.parameters for tool in tool_schemas(agent, calls)]
    assert len({frozenset(one.properties) for one in found}) > 1
    assert any(one.required for one in found)


@pytest.mark.parametrize("agent", TABLES)
def test_every_known_tool_alone_makes_a_line_that_any_file_fits(agent: str) -> None:
    for name in TABLES[agent]:
        found = parameters(agent, (name, {}))
        assert len({frozenset(one.properties) for one in found.values()}) > 1
        for one in found.values():
            assert set(one.required) <= one.properties.keys()
            Draft202012Validator.check_schema(json.loads(encode(one)))


@given(
    st.sampled_from(["claude-code", "droid", "codex", "recorder"]),
    st.dictionaries(st.sampled_from(["path", "old_string", "cmd", "ops", "x"]), JSON, min_size=1),
)
def test_a_call_gives_all_that_its_tool_requires_or_nothing_unknown(
    agent: str, arguments: dict[str, object]
) -> None:
    for name in ("Edit", "Read", "shell", "apply_patch", "run_cmd", "mine"):
        schema = parameters(agent, (name, arguments))[name]
        assert arguments.keys() <= schema.properties.keys()
        known = parameters(agent, (name, {}))[name].properties.keys()
        assert set(schema.required) <= arguments.keys() or arguments.keys() <= known


LOOK = DeclaredTool(name="look", parameters='{"properties":{"at":{}},"required":["at"]}')


def declared(name: str, schema: object, description: str = "Told by its source.") -> DeclaredTool:
    return DeclaredTool(name=name, description=description, parameters=json.dumps(schema))


COUNTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "number": {"type": "integer", "minimum": 1, "description": "Of the request."},
        "state": {"enum": ["open", None]},
    },
    "required": ["number"],
    "additionalProperties": False,
}


REFERENCES = {"$ref": {"type": "string"}, "definitions": {"type": "array"}}
NAMED = {**REFERENCES, "in": {"type": "object", "properties": REFERENCES}}
SHORT = {"properties": {"command": {"type": "string", "maxLength": 9}}}
READ: dict[str, object] = {"file_path": "a.py"}


@pytest.mark.parametrize(
    ("agent", "calls", "told", "properties", "required"),
    [
        pytest.param("claude-code", [("Read", READ)], [], {"offset": {"type": "number"}}, ["file_path"], id="a known tool is whole"),
        pytest.param("claude-code", [("Bash", {"command": "ls", "sandbox": True})], [], {"sandbox": {"type": "boolean"}}, ["command"], id="an argument that the table lacks is read off the calls"),
        pytest.param("claude-code", [("Read", READ), ("Read", READ), ("Read", {"path": "a.py"})], [], {"offset": {"type": "number"}, "path": {"type": "string"}}, ["file_path"], id="a wrong name once leaves the tool what it is"),
        pytest.param("droid", [("Edit", {})], [], {"old_str": {"type": "string"}}, None, id="a name is another tool with another agent"),
        pytest.param("recorder", [("repo.readFile", {})], [], {"path": {"type": "string"}}, None, id="a dotted tool is known by its own name"),
        pytest.param("codex", [("hub.fetch", {"number": 3})], [declared("hub.fetch", COUNTED), LOOK], COUNTED["properties"], ["number"], id="a declared schema stands as it is"),
        pytest.param("claude-code", [("Bash", {"command": "ls"})], [declared("Bash", SHORT)], SHORT["properties"], None, id="what is declared beats what is known"),
        pytest.param("codex", [("fetch", {"number": 3, "loud": True})], [declared("fetch", COUNTED)], {"loud": {"type": "boolean"}, **COUNTED["properties"]}, ["number"], id="an argument that a declared tool lacks"),
        pytest.param("codex", [("link", {})], [declared("link", {"properties": NAMED}), LOOK], NAMED, None, id="a property named like a reference"),
    ],
)  # fmt: skip
def test_a_tool_is_described_by_what_is_declared_then_known_then_called(
    agent: str,
    calls: list[tuple[str, dict[str, object]]],
    told: list[DeclaredTool],
    properties: dict[str, object],
    required: list[str] | None,
) -> None:
    made = {tool.function.name: tool.function for tool in tool_schemas(agent, calls, told)}
    found = made[function_name(calls[0][0])]
    assert {**found.parameters.properties, **properties} == found.parameters.properties
    assert required is None or list(found.parameters.required) == required
    assert not told or found.description == "Told by its source."


@pytest.mark.parametrize(
    ("agent", "calls", "told", "properties"),
    [
        ("langfuse", [{"q": "retry", "n": 3, "tags": ["a"], "any": 1}, {"q": "loop", "n": 2.5, "any": "x"}], [],
         {"any": {}, "n": {"type": "number"}, "q": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}}),
        ("droid", [{"file_path": "a", "old_string": "b"}], [], {key: {"type": "string"} for key in ("file_path", "old_string")}),
        ("codex", [{"url": "a"}, {"url": "b"}], [declared("Edit", COUNTED)], {"url": {"type": "string"}}),
    ],
    ids=["an unknown tool", "another version of a known one", "another than the one declared"],
)  # fmt: skip
def test_a_tool_that_nobody_describes_is_read_off_its_calls_alone(
    agent: str,
    calls: list[dict[str, object]],
    told: list[DeclaredTool],
    properties: dict[str, object],
) -> None:
    tools = tool_schemas(agent, [("Edit", call) for call in calls], told)
    (edit,) = (t.function.parameters for t in tools if t.function.name == "Edit")
    assert edit.properties == properties
    assert set(edit.required) == set.intersection(*map(set, calls))


def test_a_declared_tool_that_was_never_called_is_declared_all_the_same() -> None:
    tools = tool_schemas("codex", [("exec_command", {"cmd": "ls"})], [declared("fetch", COUNTED)])
    assert [tool.function.name for tool in tools] == ["exec_command", "fetch"]
    assert "workdir" in tools[0].function.parameters.properties


def test_definitions_are_written_out_where_they_are_used() -> None:
    schema = {
        "$defs": {
            "Place": {"type": "object", "properties": {"file": {"$ref": "#/$defs/Name"}}},
            "Name": {"type": "string"},
            "Tree": {"type": "object", "properties": {"child": {"$ref": "#/$defs/Tree"}}},
        },
        "properties": {
            "at": {"$ref": "#/$defs/Place", "description": "Where."},
            "all": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "tree": {"$ref": "#/$defs/Tree"},
            "gone": {"$ref": "#/$defs/Nowhere", "title": "Gone"},
            "any": True,
        },
    }
    (edit, _) = tool_schemas("codex", [], [declared("edit", schema), LOOK])
    place = {"type": "object", "properties": {"file": {"type": "string"}}}
    assert edit.function.parameters.properties == {
        "at": {**place, "description": "Where."},
        "all": {"type": "array", "items": place},
        "tree": {"type": "object", "properties": {"child": {}}},
        "gone": {"title": "Gone"},
        "any": {},
    }


def test_definitions_that_would_never_be_written_out_are_cut_short() -> None:
    names = [f"d{number}" for number in range(40)]
    schema = {
        "$defs": {
            name: {"anyOf": [{"$ref": f"#/$defs/{after}"}, {"$ref": f"#/$defs/{after}"}]}
            for name, after in zip(names, [*names[1:], "end"], strict=True)
        },
        "properties": {"all": {"$ref": "#/$defs/d0"}},
    }
    assert len(encode(tool_schemas("codex", [], [declared("f", schema)]))) < 50_000


def test_a_long_definition_is_not_written_out_hundreds_of_times() -> None:
    properties = {f"p{number}": {"$ref": "#/$defs/Name"} for number in range(300)}
    names = [f"name {number}" for number in range(6_000)]
    schema = {"$defs": {"Name": {"enum": names}}, "properties": properties}
    (_, many) = tool_schemas("codex", [], [declared("many", schema), LOOK])
    told = many.function.parameters.properties
    assert list(told) == list(properties)
    assert sum("enum" in one for one in told.values()) == 1


def test_a_schema_that_is_nested_without_an_end_in_sight_is_cut_short() -> None:
    deep = '{"items":' * 800 + "{}" + "}" * 800
    told = DeclaredTool(name="f", parameters=f'{{"properties":{{"a":{deep}}}}}')
    (f, _) = tool_schemas("codex", [("f", {"a": 1})], [told, LOOK])
    assert 400 < len(encode(f.function.parameters.properties)) < 1_000


def test_no_more_tools_are_declared_than_a_line_may_have() -> None:
    many = [declared(f"tool{number:03}", COUNTED) for number in range(200)]
    tools = tool_schemas("codex", [("exec_command", {"cmd": "ls"}), ("tool199", {})], many)
    names = [tool.function.name for tool in tools]
    assert len(names) == MOST_TOOLS
    assert {"exec_command", "tool199", "tool000"} <= set(names)


def test_nor_where_one_more_is_needed_for_a_loader_to_see_that_they_differ() -> None:
    alike = [declared(f"tool{number:03}", COUNTED) for number in range(MOST_TOOLS)]
    tools = tool_schemas("unheard-of", [("tool127", {"number": 1})], alike)
    assert len(tools) == MOST_TOOLS
    names = {tool.function.name for tool in tools}
    assert {"tool127", "tool000"} <= names
    assert len({frozenset(tool.function.parameters.properties) for tool in tools}) > 1


def test_tools_without_those_that_were_not_called_still_show_a_loader_that_they_differ() -> None:
    many = [declared(f"tool{number}", COUNTED) for number in range(9)]
    tools = tool_schemas("codex", [("exec_command", {"cmd": "ls"}), ("tool3", {})], many)
    kept = [tool.function.name for tool in without_uncalled(tools, {"exec_command", "tool3"})]
    assert kept == ["exec_command", "tool3"]
    alone = without_uncalled(tools, {"tool3"})
    assert len(alone) == 2


@settings(deadline=None, max_examples=20)
@given(
    st.lists(st.builds(DeclaredTool, name=NAMES, description=st.text(), parameters=INPUTS)),
    st.lists(st.tuples(NAMES, st.dictionaries(st.text(max_size=8), JSON, max_size=3)), max_size=6),
)
def test_whatever_is_declared_a_line_describes_every_call(
    told: list[DeclaredTool], calls: list[tuple[str, dict[str, object]]]
) -> None:
    tools = tool_schemas("codex", calls, told)
    taken = {tool.function.name: set(tool.function.parameters.properties) for tool in tools}
    assert len(taken) == len(tools)
    for name, arguments in calls:
        assert {mend_text(key) for key in arguments} <= taken[function_name(name)]
    for tool in tools:
        assert set(tool.function.parameters.required) <= taken[tool.function.name]
    assert len({frozenset(one) for one in taken.values()}) > 1
    assert json.loads(encode(tools))

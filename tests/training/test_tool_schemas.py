from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from debrief.training.formats import encode
from debrief.training.known_tools import TABLES
from debrief.training.model import ToolParameters
from debrief.training.tool_schemas import tool_schemas
from tests.training.strategies import JSON, NAMES


def parameters(agent: str, *calls: tuple[str, dict[str, object]]) -> dict[str, ToolParameters]:
    return {tool.function.name: tool.function.parameters for tool in tool_schemas(agent, calls)}


def test_a_known_tool_has_its_whole_schema() -> None:
    read = parameters("claude-code", ("Read", {"file_path": "a.py"}))["Read"]
    assert read.required == ("file_path",)
    assert read.properties["offset"] == {"type": "number"}


def test_an_argument_that_the_table_lacks_is_read_off_the_calls() -> None:
    bash = parameters("claude-code", ("Bash", {"command": "ls", "sandbox": True}))["Bash"]
    assert bash.properties["sandbox"] == {"type": "boolean"}
    assert bash.required == ("command",)


def test_an_unknown_tool_is_read_off_its_calls() -> None:
    search = parameters(
        "langfuse",
        ("search", {"query": "retry", "limit": 3, "tags": ["a"], "any": 1}),
        ("search", {"query": "loop", "limit": 2.5, "any": "x"}),
    )["search"]
    assert search.properties == {
        "any": {},
        "limit": {"type": "number"},
        "query": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    }
    assert search.required == ("any", "limit", "query")


def test_the_same_name_means_another_tool_with_another_agent() -> None:
    claude = parameters("claude-code", ("Edit", {}), ("Read", {}))["Edit"]
    droid = parameters("droid", ("Edit", {}), ("Read", {}))["Edit"]
    assert "old_string" in claude.properties
    assert "old_str" in droid.properties


def test_a_dotted_tool_is_found_in_the_table_by_its_own_name() -> None:
    assert "path" in parameters("recorder", ("repo.readFile", {}))["repo_readFile"].properties


def test_a_session_of_one_tool_gets_a_second_one_that_its_agent_has() -> None:
    assert set(parameters("claude-code", ("Bash", {"command": "ls"}))) == {"Bash", "Read"}


def test_a_session_of_many_tools_gets_none_that_it_did_not_use() -> None:
    assert set(parameters("claude-code", ("Bash", {}), ("Edit", {}))) == {"Bash", "Edit"}


@settings(deadline=None)
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


def test_calls_of_another_version_of_a_tool_are_told_by_their_own_arguments() -> None:
    edit = parameters("droid", ("Edit", {"file_path": "a", "old_string": "b", "new_string": "c"}))
    assert set(edit["Edit"].properties) == {"file_path", "new_string", "old_string"}
    assert edit["Edit"].required == ("file_path", "new_string", "old_string")


def test_a_call_by_a_wrong_name_once_leaves_the_tool_what_it_is() -> None:
    right: dict[str, object] = {"file_path": "a.py"}
    wrong: dict[str, object] = {"path": "a.py"}
    read = parameters("claude-code", ("Read", right), ("Read", right), ("Read", wrong))["Read"]
    assert read.required == ("file_path",)
    assert {"offset", "path"} <= read.properties.keys()


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

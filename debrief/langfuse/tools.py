"""The tools that an observation declares, wherever its integration puts them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from debrief.langfuse.messages import is_definition
from debrief.langfuse.values import decoded, words
from debrief.sessions.model import DeclaredTool
from debrief.sessions.readers.values import declared_tools

Row = Mapping[str, Any]

_LISTS = ("tools", "functions")
_ATTRIBUTES = ("gen_ai.tool.definitions", "ai.prompt.tools", "llm.tools", "llm.request.functions")
_NUMBERED = re.compile(r"llm\.(?:tools|request\.functions)\.(\d{1,6})\.(.+)")
_NUMBERED_NAMES = {"tool.name": "name", "tool.description": "description"}
_MARKS = ("gen_ai.tool", "ai.prompt.tools", "llm.tools", "llm.request.functions", "function_tools")
_OF_TOOLS = words(
    "description parameters inputSchema input_schema parameters_json_schema function "
    "functionDeclarations function_declarations toolSpec"
)


def declared_by(row: Row, given: object, gave: object) -> tuple[DeclaredTool, ...]:
    """Return the tools that an observation tells the model of.

    Args:
        row: as the server has it.
        given: its input, decoded.
        gave: its output, decoded: the Responses API repeats the tools there.
    """
    return tuple(_declared(row, given, gave))


def _declared(row: Row, given: object, gave: object) -> Iterator[DeclaredTool]:
    yield from declared_tools(row.get("toolDefinitions"))
    if isinstance(given, list):
        for item in given:
            if is_definition(item):
                yield from declared_tools(item["content"])
    elif isinstance(given, dict):
        yield from _in_request(given)
        messages = decoded(given.get("messages"))
        for item in messages if isinstance(messages, list) else ():
            if is_definition(item):
                yield from declared_tools(item["content"])
    if isinstance(gave, dict) and gave.get("object") == "response":
        yield from _in_request(gave)
    parameters = decoded(row.get("modelParameters"))
    if isinstance(parameters, dict):
        yield from _in_request(parameters)
    metadata = decoded(row.get("metadata"))
    if isinstance(metadata, dict):
        yield from _in_metadata(metadata)


def _in_request(request: Mapping[str, Any]) -> Iterator[DeclaredTool]:
    config = request.get("config")
    for holder in (request, config if isinstance(config, dict) else {}):
        for key in _LISTS:
            if any(map(_is_like_a_tool, _listed(holder.get(key)))):
                yield from declared_tools(holder[key])


def _in_metadata(metadata: Mapping[str, Any]) -> Iterator[DeclaredTool]:
    for key in _LISTS:
        if _are_tools(metadata.get(key)):
            yield from declared_tools(metadata[key])
    given = metadata.get("attributes")
    if isinstance(given, str) and not any(mark in given for mark in _MARKS):
        return
    attributes = decoded(given)
    if not isinstance(attributes, dict):
        return
    for key in _ATTRIBUTES:
        if _are_tools(attributes.get(key)):
            yield from declared_tools(attributes[key])
    parameters = decoded(attributes.get("model_request_parameters"))
    if isinstance(parameters, dict):
        yield from declared_tools(parameters.get("function_tools"))
    yield from _numbered(attributes)


def _are_tools(value: object) -> bool:
    """Return whether a list that anybody may have put there is one of tools and of nothing else."""
    listed = _listed(value)
    return bool(listed) and all(map(_is_like_a_tool, listed))


def _listed(value: object) -> list[Any]:
    found = decoded(value)
    return found if isinstance(found, list) else []


def _is_like_a_tool(item: object) -> bool:
    tool = decoded(item)
    return isinstance(tool, dict) and any(key in tool for key in _OF_TOOLS)


def _numbered(attributes: Mapping[str, Any]) -> Iterator[DeclaredTool]:
    """Yield the tools that are spread over attributes with a number in their names."""
    tools: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if (found := _NUMBERED.fullmatch(key)) is not None:
            tool = tools.setdefault(int(found[1]), {})
            if found[2] == "tool.json_schema":
                schema = decoded(value)
                if isinstance(schema, dict):
                    is_bare = schema.get("type") == "object"
                    tool.update({"parameters": schema} if is_bare else schema)
            else:
                tool.setdefault(_NUMBERED_NAMES.get(found[2], found[2]), value)
    for _, tool in sorted(tools.items()):
        yield from declared_tools(tool)

"""The tools that a source declares itself, in whatever vendor's words.

OpenAI wraps a function or lays it flat, Anthropic and the Model Context Protocol call its
arguments an input schema, Bedrock wraps that once more, Gemini puts functions into a list of their
own, Codex groups them by namespace, and tracing libraries write any of these as JSON text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from debrief.sessions.model import DeclaredTool
from debrief.sessions.readers.jsonl import compact_json

_GROUPS = ("tools", "functionDeclarations", "function_declarations")
_SCHEMAS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parametersJsonSchema",
    "parameters_json_schema",
    "schema",
)
_FREE_TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
}
"""What a tool takes whose input is no JSON."""
_DEEPEST = 4


def declared_tools(value: object) -> tuple[DeclaredTool, ...]:
    """Return the tools that ``value`` declares, each name once; what declares none is passed over.

    Args:
        value: a list of tools, one tool, or tools by their names, as decoded from JSON or as its
            text.
    """
    return unique(_tools(value, _DEEPEST))


def unique(tools: Iterable[DeclaredTool]) -> tuple[DeclaredTool, ...]:
    """Return tools, the first of each name; one that tells its arguments beats one that does
    not."""
    known: dict[str, DeclaredTool] = {}
    for tool in tools:
        if tool.name not in known or (tool.parameters and not known[tool.name].parameters):
            known[tool.name] = tool
    return tuple(known.values())


def qualified(namespace: object, name: str) -> str:
    """Return a tool's name with the namespace that it is one of, as servers' tools are called.

    >>> qualified("mcp__docs", "search"), qualified("mcp__docs", "_search"), qualified("", "search")
    ('mcp__docs__search', 'mcp__docs_search', 'search')
    """
    if not isinstance(namespace, str) or not namespace:
        return name
    return f"{namespace}{'' if namespace.endswith('_') or name.startswith('_') else '__'}{name}"


def _tools(value: object, depth: int, namespace: object = "") -> Iterator[DeclaredTool]:
    value = _decoded(value)
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _tools(item, depth - 1, namespace)
        return
    if not isinstance(value, dict):
        return
    group = next((value[key] for key in _GROUPS if isinstance(value.get(key), list)), None)
    if group is not None:
        named = value.get("name") if value.get("type") == "namespace" else ""
        yield from _tools(group, depth - 1, named or namespace)
    elif isinstance(function := value.get("function"), dict):
        yield from _tool(function)
    elif isinstance(custom := value.get("custom"), dict):
        yield from _tool({**custom, "type": "custom"})
    elif isinstance(specification := value.get("toolSpec"), dict):
        yield from _tool(specification)
    elif isinstance(value.get("name"), str):
        yield from _tool(value, value.get("namespace") or namespace)
    else:
        for name, item in value.items():
            item = _decoded(item)
            if isinstance(item, dict) and any(key in item for key in (*_SCHEMAS, "description")):
                yield from _tool({**item, "name": name})


def _tool(value: Mapping[str, Any], namespace: object = "") -> Iterator[DeclaredTool]:
    name, description = value.get("name"), value.get("description")
    if not isinstance(name, str) or not name.strip():
        return
    schemas = (_schema(value[key]) for key in _SCHEMAS if key in value)
    schema = next((schema for schema in schemas if schema is not None), None)
    if schema is None and value.get("type") == "custom":
        schema = _FREE_TEXT
    yield DeclaredTool(
        name=qualified(namespace, name),
        description=description if isinstance(description, str) else "",
        parameters="" if schema is None else compact_json(schema),
    )


def _schema(value: object) -> dict[str, Any] | None:
    value = _decoded(value)
    if isinstance(value, dict) and isinstance(value.get("jsonSchema"), dict):
        value = value["jsonSchema"]
    if isinstance(value, dict) and isinstance(value.get("json"), dict):
        value = value["json"]
    return value if isinstance(value, dict) else None


def _decoded(value: object) -> object:
    if isinstance(value, str):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value

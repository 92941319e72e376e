"""The ``tools`` of a line: what the session's agent could call, as JSON schemas.

A transcript names the tools but seldom describes them. Those of the usual agents are known;
of others, and of those that were mostly called in another way, the calls in the session
tell which arguments there are, of which type, and which are always given.

Each schema has the same three keys, and ``properties`` is the one place where lines differ. A
loader makes that a free-form column when it sees two tools with different properties, and a fixed
record, into which no other file fits, when it does not. So a line in which all tools take the
same arguments gets one more tool that its agent has as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from debrief.training.formats import function_name, whole_text
from debrief.training.known_tools import OF_ANY_AGENT, TABLES, Known
from debrief.training.model import Schema, ToolFunction, ToolParameters, ToolSchema

Arguments = Mapping[str, object]

_UNDESCRIBED = "A tool of this session, its arguments as they were used."


class _DeclaredFunction(Struct, frozen=True):
    name: str
    description: str = ""
    parameters: ToolParameters = ToolParameters()


class _Declared(Struct, frozen=True):
    function: _DeclaredFunction


_DECLARED = msgspec.json.Decoder(list[_Declared])


def tool_schemas(agent: str, calls: Iterable[tuple[str, Arguments]]) -> tuple[ToolSchema, ...]:
    """Return the schemas of the tools that a session called, by name.

    Args:
        agent: the session's ``tool``, such as ``claude-code``.
        calls: each call's tool, as the transcript names it, and its arguments.
    """
    known = TABLES.get(agent, {})
    described = {function_name(name): entry for name, entry in known.items()}
    seen: dict[str, list[Arguments]] = {}
    for name, arguments in calls:
        seen.setdefault(function_name(name), []).append(arguments)
    tools = {name: _schema(name, described.get(name), calls) for name, calls in seen.items()}
    for name, entry in [*described.items(), *OF_ANY_AGENT.items()]:
        if _all_alike(tools.values()):
            tools.setdefault(name, _schema(name, entry, []))
    return tuple(tools[name] for name in sorted(tools))


def declared_schemas(
    declared: str, calls: Iterable[tuple[str, Arguments]]
) -> tuple[ToolSchema, ...]:
    """Return the schemas that a transcript itself declares, by name; empty when they will not do.

    They do when they describe every call, and when a loader can read their types.

    Args:
        declared: JSON text of a list, as in OpenAI's ``tools``.
        calls: each call's tool, as the transcript names it, and its arguments.
    """
    try:
        found = _DECLARED.decode(declared)
    except msgspec.DecodeError:
        return ()
    tools = {
        name: ToolSchema(
            function=ToolFunction(
                name=name,
                description=tool.function.description or _UNDESCRIBED,
                parameters=ToolParameters(
                    properties=dict(tool.function.parameters.properties),
                    required=tuple(tool.function.parameters.required),
                ),
            )
        )
        for tool in found
        for name in (function_name(tool.function.name),)
    }
    for name, arguments in calls:
        tool = tools.get(function_name(name))
        if tool is None or set(arguments) - tool.function.parameters.properties.keys():
            return ()
    if len(tools) < len(found) or _all_alike(tools.values()):
        return ()
    return tuple(tools[name] for name in sorted(tools))


def _all_alike(tools: Iterable[ToolSchema]) -> bool:
    """Tell whether a loader could take ``properties`` for a fixed record, or has no required
    argument to read that list's type off."""
    parameters = [tool.function.parameters for tool in tools]
    shapes = {frozenset(item.properties) for item in parameters}
    return len(shapes) < 2 or not any(item.required for item in parameters)


def _schema(name: str, known: Known | None, calls: list[Arguments]) -> ToolSchema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for word in known.arguments.split() if known else ():
        argument, _, kind = word.partition(":")
        argument_name = argument.rstrip("*")
        properties[argument_name] = _of_kind(kind or "string")
        if argument.endswith("*"):
            required.append(argument_name)
    given = {whole_text(key) for arguments in calls for key in arguments}
    if known is None or _are_of_another(calls, required, properties):
        properties = {}
        required = sorted(key for key in given if all(key in call for call in calls))
    for key in sorted(given - properties.keys()):
        properties[key] = _inferred([call[key] for call in calls if key in call])
    return ToolSchema(
        function=ToolFunction(
            name=name,
            description=known.description if known else _UNDESCRIBED,
            parameters=ToolParameters(properties=properties, required=tuple(required)),
        )
    )


def _are_of_another(
    calls: list[Arguments], required: list[str], properties: Mapping[str, Schema]
) -> bool:
    """Tell whether calls are of another tool of the same name, or of another version of it: most
    lack a required argument and give one that is not known. A few such are the model's mistakes."""
    others = sum(
        not call.keys() <= properties.keys() and not call.keys() >= set(required) for call in calls
    )
    return 2 * others > len(calls)


def _of_kind(kind: str) -> Schema:
    if kind.endswith("[]"):
        return {"type": "array", "items": {"type": kind[:-2]}}
    return {"type": kind}


def _inferred(values: list[object]) -> Schema:
    """Return the schema that holds for all of ``values``; the empty one when they differ."""
    kinds = {_kind(value) for value in values if value is not None}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) != 1:
        return {}
    kind = kinds.pop()
    if kind != "array":
        return {"type": kind}
    items = [item for value in values if isinstance(value, list) for item in value]
    return {"type": "array", "items": _inferred(items)}


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"

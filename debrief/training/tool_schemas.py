"""The ``tools`` of a line: what the session's agent could call, as JSON schemas.

A schema that the session's source declares stands as it is. Most transcripts name the tools and
do not describe them. Those of the usual agents are known; of others, and of those that were
mostly called in another way, the calls in the session tell which arguments there are, of which
type, and which are always given.

Each schema has the same three keys, and ``properties`` is the one place where lines differ. A
loader makes that a free-form column when it sees two tools with different properties, and a fixed
record, into which no other file fits, when it does not. So a line in which all tools take the
same arguments gets one more tool that its agent has as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from debrief.sessions.model import DeclaredTool
from debrief.training.declared_schemas import UNDESCRIBED, schema_of
from debrief.training.formats import MOST_TOOLS, function_name, whole_text
from debrief.training.known_tools import OF_ANY_AGENT, TABLES, KnownTool
from debrief.training.model import Schema, ToolFunction, ToolParameters, ToolSchema

Arguments = Mapping[str, object]


def tool_schemas(
    agent: str,
    calls: Iterable[tuple[str, Arguments]],
    declared: Sequence[DeclaredTool] = (),
) -> tuple[ToolSchema, ...]:
    """Return the schemas of the tools that a session called or was given, by name.

    Args:
        agent: the session's ``tool``, such as ``claude-code``.
        calls: each call's tool, as the transcript names it, and its arguments.
        declared: the tools that the session's source describes; beyond 128 tools those that were
            not called are left out, the last first.
    """
    known = {function_name(name): entry for name, entry in TABLES.get(agent, {}).items()}
    described: dict[str, ToolSchema] = {}
    for tool in declared:
        schema = schema_of(tool)
        if schema is not None:
            described.setdefault(schema.function.name, schema)
    seen: dict[str, list[Arguments]] = {}
    for called, arguments in calls:
        seen.setdefault(function_name(called), []).append(arguments)
    tools: dict[str, ToolSchema] = {}
    for name, given in seen.items():
        tools[name] = _declared(described.get(name), given) or _schema(name, known.get(name), given)
    others = {name: _schema(name, entry, []) for name, entry in known.items()}
    uncalled = {name: schema for name, schema in described.items() if name not in tools}
    made = _unlike(tools | uncalled, others)
    while len(made) > MOST_TOOLS and uncalled:
        too_many = len(made) - MOST_TOOLS
        uncalled = dict(list(uncalled.items())[:-too_many])
        made = _unlike(tools | uncalled, others)
    return made


def without_uncalled(
    tools: Iterable[ToolSchema], called: Collection[str]
) -> tuple[ToolSchema, ...]:
    """Return the tools that were called, and as few others as tell a loader that tools differ.

    Args:
        tools: of a line.
        called: names of those that a call in it is of, as they stand there.
    """
    by_name = {tool.function.name: tool for tool in tools}
    kept = {name: tool for name, tool in by_name.items() if name in called}
    return _unlike(kept, by_name)


def _unlike(
    tools: Mapping[str, ToolSchema], others: Mapping[str, ToolSchema]
) -> tuple[ToolSchema, ...]:
    """Return tools by name, with as many others as a loader needs to see that tools differ."""
    tools = dict(tools)
    anyones = {name: _schema(name, entry, []) for name, entry in OF_ANY_AGENT.items()}
    for name, schema in [*others.items(), *anyones.items()]:
        if _all_alike(tools.values()):
            tools.setdefault(name, schema)
    return tuple(tools[name] for name in sorted(tools))


def _declared(schema: ToolSchema | None, calls: list[Arguments]) -> ToolSchema | None:
    """Return a declared schema with what calls give besides; None when they are of another tool."""
    if schema is None:
        return None
    parameters = schema.function.parameters
    if _are_of_another(calls, parameters.required, parameters.properties):
        return None
    besides = _besides(calls, parameters.properties)
    if not besides:
        return schema
    properties = {**parameters.properties, **besides}
    return replace(
        schema,
        function=replace(schema.function, parameters=replace(parameters, properties=properties)),
    )


def _besides(calls: list[Arguments], known: Collection[str]) -> dict[str, Schema]:
    """Return schemas of the arguments that are not known, as they were used."""
    given = {whole_text(key) for arguments in calls for key in arguments} - set(known)
    return {key: _inferred([call[key] for call in calls if key in call]) for key in sorted(given)}


def _all_alike(tools: Iterable[ToolSchema]) -> bool:
    """Return whether a loader could take ``properties`` for a fixed record, or has no required
    argument to read that list's type off."""
    parameters = [tool.function.parameters for tool in tools]
    shapes = {frozenset(item.properties) for item in parameters}
    return len(shapes) < 2 or not any(item.required for item in parameters)


def _schema(name: str, known: KnownTool | None, calls: list[Arguments]) -> ToolSchema:
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for word in known.arguments.split() if known else ():
        argument, _, kind = word.partition(":")
        argument_name = argument.rstrip("*")
        properties[argument_name] = _of_kind(kind or "string")
        if argument.endswith("*"):
            required.append(argument_name)
    if known is None or _are_of_another(calls, required, properties):
        properties = {}
        given = {whole_text(key) for arguments in calls for key in arguments}
        required = sorted(key for key in given if all(key in call for call in calls))
    properties |= _besides(calls, properties)
    return ToolSchema(
        function=ToolFunction(
            name=name,
            description=known.description if known else UNDESCRIBED,
            parameters=ToolParameters(properties=properties, required=tuple(required)),
        )
    )


def _are_of_another(
    calls: list[Arguments], required: Sequence[str], properties: Mapping[str, Schema]
) -> bool:
    """Return whether calls are of another tool of the same name, or of another version of it: most
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

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

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.resources import files

from msgspec.structs import replace

from debrief.sessions.model import DeclaredTool
from debrief.training.formats import MOST_TOOLS, function_name, label, parsed_arguments, whole_text
from debrief.training.model import Schema, ToolFunction, ToolParameters, ToolSchema

_UNDESCRIBED = "A tool of this session, its arguments as they were used."

_DEFINITIONS = ("$defs", "definitions")
_MOST_INLINED, _DEEPEST = 5_000, 64
"""Values out of definitions, after which no more are written out, as they may use each other so
often that it would take forever."""


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}


def _known_tools(tools: Mapping[str, Sequence[str]]) -> dict[str, ToolSchema]:
    """Return the schemas of tools that are known by name, description and arguments.

    Of the arguments, ``path*`` is required, ``:`` names a type other than string, ``[]`` an array
    of it.
    """
    made = {}
    for tool, (description, arguments) in tools.items():
        name, words = function_name(tool), [word.partition(":") for word in arguments.split()]
        parameters = ToolParameters(
            properties={word.rstrip("*"): _of_kind(kind or "string") for word, _, kind in words},
            required=tuple(word[:-1] for word, _, _ in words if word.endswith("*")),
        )
        made[name] = _schema(name, description, parameters)
    return made


def _of_kind(kind: str) -> Schema:
    if kind.endswith("[]"):
        return {"type": "array", "items": {"type": kind[:-2]}}
    return {"type": kind}


def _schema(name: str, description: str, parameters: ToolParameters) -> ToolSchema:
    return ToolSchema(
        function=ToolFunction(name=name, description=description, parameters=parameters)
    )


TABLES = {
    agent: _known_tools(tools)
    for agent, tools in tomllib.loads(
        files("debrief.training").joinpath("known_tools.toml").read_text("utf-8")
    ).items()
}
"""Schemas by agent, as a session's ``tool`` names it, and by name."""
OF_ANY_AGENT = TABLES.pop("any")
"""What a person is there for, whatever the agent."""

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
    known = TABLES.get(agent, {})
    described: dict[str, ToolSchema] = {}
    for tool in declared:
        schema = _schema_of(tool)
        if schema is not None:
            described.setdefault(schema.function.name, schema)
    seen: dict[str, list[Arguments]] = {}
    for called, arguments in calls:
        seen.setdefault(function_name(called), []).append(arguments)
    tools = {
        name: _of_calls(name, given, described.get(name), known.get(name))
        for name, given in seen.items()
    }
    uncalled = {name: schema for name, schema in described.items() if name not in tools}
    made = _unlike(tools | uncalled, known)
    while len(made) > MOST_TOOLS and uncalled:
        too_many = len(made) - MOST_TOOLS
        uncalled = dict(list(uncalled.items())[:-too_many])
        made = _unlike(tools | uncalled, known)
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
    for name, schema in [*others.items(), *OF_ANY_AGENT.items()]:
        if _all_alike(tools.values()):
            tools.setdefault(name, schema)
    return tuple(tools[name] for name in sorted(tools))


def _of_calls(
    name: str, calls: list[Arguments], declared: ToolSchema | None, known: ToolSchema | None
) -> ToolSchema:
    """Return a called tool's schema, with what calls give besides; one read off the calls alone
    where they are of another tool."""
    for schema in filter(None, (declared, known)):
        function, parameters = schema.function, schema.function.parameters
        if not _are_of_another(calls, parameters):
            besides = _besides(calls, parameters.properties)
            parameters = replace(parameters, properties={**parameters.properties, **besides})
            return _schema(name, function.description, parameters) if besides else schema
    properties = _besides(calls, ())
    required = tuple(key for key in properties if all(key in call for call in calls))
    description = known.function.description if known else _UNDESCRIBED
    return _schema(name, description, ToolParameters(properties=properties, required=required))


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


def _are_of_another(calls: list[Arguments], parameters: ToolParameters) -> bool:
    """Return whether calls are of another tool of the same name, or of another version of it: most
    lack a required argument and give one that is not known. A few such are the model's mistakes."""
    known, required = parameters.properties.keys(), set(parameters.required)
    others = sum(not call.keys() <= known and not call.keys() >= required for call in calls)
    return 2 * others > len(calls)


def _inferred(values: list[object]) -> Schema:
    """Return the schema that holds for all of ``values``; the empty one when they differ."""
    kinds = {_KINDS.get(type(value), "object") for value in values if value is not None}
    if kinds == {"integer", "number"}:
        kinds = {"number"}
    if len(kinds) != 1:
        return {}
    if kinds != {"array"}:
        return {"type": kinds.pop()}
    items = [item for value in values if isinstance(value, list) for item in value]
    return {"type": "array", "items": _inferred(items)}


def _schema_of(tool: DeclaredTool) -> ToolSchema | None:
    """Return a tool's schema as it is declared; None when its arguments are not.

    What its arguments refer to is written out where they do, as a line has no room for
    definitions beside them.
    """
    declared = parsed_arguments(tool.parameters)
    if declared is None:
        return None
    properties, required = declared.get("properties"), declared.get("required")
    inlined = _Inlined(declared)
    schemas = {
        whole_text(name): inlined.schema(value)
        for name, value in (properties if isinstance(properties, dict) else {}).items()
    }
    names = (
        [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    )
    return _schema(
        function_name(tool.name),
        label(whole_text(tool.description)) or _UNDESCRIBED,
        ToolParameters(
            properties=schemas,
            required=tuple(dict.fromkeys(name for name in names if name in schemas)),
        ),
    )


class _Inlined:
    """Writes out what schemas refer to.

    Where that has no end, as with a definition that holds itself, the empty schema stands, which
    any value fits.
    """

    def __init__(self, declared: Mapping[str, object]) -> None:
        self._definitions = {
            f"#/{key}/{name}": schema
            for key in _DEFINITIONS
            if isinstance(found := declared.get(key), dict)
            for name, schema in found.items()
        }
        self._left = _MOST_INLINED

    def schema(self, value: object) -> Schema:
        """Return the schema of one argument; ``true``, which any value fits, as the empty one."""
        found = self._written_out(value, (), _DEEPEST)
        return found if isinstance(found, dict) else {}

    def _written_out(self, value: object, within: tuple[str, ...], depth: int) -> object:
        if within and isinstance(value, list | dict):
            self._left -= len(value)
        if isinstance(value, list):
            return [self._written_out(item, within, depth - 1) for item in value] if depth else []
        if not isinstance(value, dict):
            return value
        if not depth:
            return {}
        reference = value.get("$ref")
        beside = {
            key: self._written_out(item, within, depth - 1)
            for key, item in value.items()
            if key != "$ref" or not isinstance(item, str)
        }
        if not isinstance(reference, str) or reference in within or self._left <= 0:
            return beside
        self._left -= 1
        definition = self._definitions.get(reference)
        found = self._written_out(definition, (*within, reference), depth - 1)
        return {**found, **beside} if isinstance(found, dict) else beside

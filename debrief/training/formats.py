"""OpenAI's fine-tuning format: the tools of a line as JSON schemas, and the rules that lines keep.

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

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from debrief.sessions.model import DeclaredTool
from debrief.sessions.readers.documents import mend_text
from debrief.training.conversations import function_name, label, parsed_arguments
from debrief.training.model import (
    ChatCall,
    NotTrained,
    SampleMetadata,
    Schema,
    ToolFunction,
    ToolParameters,
    ToolSchema,
)

CALL_ID = re.compile(r"[A-Za-z0-9]{9}\Z")
FUNCTION_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
MOST_TOOLS = 128
"""OpenAI takes no more in a line."""
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
    given = {mend_text(key) for arguments in calls for key in arguments} - set(known)
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
    properties = properties if isinstance(properties, dict) else {}
    names = required if isinstance(required, list) else []
    inlined = _Inlined(declared)
    schemas = {mend_text(name): inlined.schema(value) for name, value in properties.items()}
    taken = dict.fromkeys(name for name in names if isinstance(name, str) and name in schemas)
    description = label(mend_text(tool.description)) or _UNDESCRIBED
    parameters = ToolParameters(properties=schemas, required=tuple(taken))
    return _schema(function_name(tool.name), description, parameters)


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
        if not isinstance(value, list | dict):
            return value
        if within:
            self._left -= len(value)
        if not depth:
            return type(value)()
        if isinstance(value, list):
            return [self._written_out(item, within, depth - 1) for item in value]
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


class _StrictMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="role"):
    """A message with the keys that belong to its role, and no others."""

    content: str


class StrictSystem(_StrictMessage, frozen=True, tag="system"):
    """A system message."""


class StrictUser(_StrictMessage, frozen=True, tag="user"):
    """A user message."""

    machine: tuple[tuple[int, int], ...] = ()


class StrictAssistant(_StrictMessage, frozen=True, tag="assistant"):
    """An assistant message."""

    tool_calls: tuple[ChatCall, ...] | UnsetType = UNSET
    weight: Literal[0, 1] | UnsetType = UNSET
    reasoning_content: str = ""
    not_trained: NotTrained | None = None


class StrictTool(_StrictMessage, frozen=True, tag="tool"):
    """A call's result."""

    tool_call_id: str
    machine: tuple[tuple[int, int], ...] = ()


class _StrictMetadata(SampleMetadata, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _StrictLine(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictSystem | StrictUser | StrictAssistant | StrictTool, ...]
    tools: Raw
    metadata: _StrictMetadata


_LINE = msgspec.json.Decoder(_StrictLine)
TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def validate_line(line: bytes | str) -> list[str]:
    """Return what is wrong with a line of a training set; an empty list when nothing is.

    Checked are the shape and types of every column, and the rules of OpenAI's fine-tuning
    format: roles and their keys, function names, declared tools, arguments, call ids, each call
    answered at once and each result called for, an assistant's words at the end.
    """
    try:
        decoded = _LINE.decode(line)
        problems, taken = _rules_of(bytes(decoded.tools))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return [f"not a line of the expected shape: {error}"]
    return [*problems, *_messages(decoded, taken)]


@lru_cache(maxsize=32)
def _rules_of(tools: bytes) -> tuple[list[str], dict[str, frozenset[str]]]:
    """Return what is wrong with a line's tools, and the arguments that each of them takes; most
    lines of a set have the same ones."""
    functions = [tool.function for tool in TOOLS.decode(tools)]
    taken = {function.name: frozenset(function.parameters.properties) for function in functions}
    return list(_tools(functions)), taken


def _tools(tools: Sequence[ToolFunction]) -> Iterator[str]:
    if not 0 < len(tools) <= MOST_TOOLS:
        yield f"{len(tools)} tools, and there must be 1 to {MOST_TOOLS}"
    if len({tool.name for tool in tools}) < len(tools):
        yield "two tools have one name"
    for tool in tools:
        name, parameters = tool.name, tool.parameters
        if not FUNCTION_NAME.match(name):
            yield f"tool {name!r} is not a name that OpenAI takes"
        missing = set(parameters.required) - set(parameters.properties)
        if missing:
            yield f"tool {name}: {sorted(missing)} are required and not described"


def _messages(line: _StrictLine, taken: Mapping[str, frozenset[str]]) -> Iterator[str]:
    messages = line.messages
    if not messages:
        yield "no messages"
        return
    for role, kind in (("user", StrictUser), ("assistant", StrictAssistant)):
        if not any(isinstance(message, kind) for message in messages):
            yield f"no {role} message"
    last = messages[-1]
    if not isinstance(last, StrictAssistant) or last.tool_calls or not last.content:
        yield "does not end on an assistant's words"
    open_calls: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        if isinstance(message, StrictTool):
            if message.tool_call_id in open_calls:
                open_calls.remove(message.tool_call_id)
            else:
                yield f"message {number}: a result of no open call: {message.tool_call_id!r}"
            continue
        if open_calls:
            yield f"message {number}: before it, calls without a result: {open_calls}"
            open_calls = []
        if isinstance(message, StrictSystem) and number:
            yield f"message {number}: a system message comes first or not at all"
        if not isinstance(message, StrictAssistant):
            continue
        if message.tool_calls == ():
            yield f"message {number}: an empty list of calls"
        elif not message.tool_calls and not message.content:
            yield f"message {number}: neither words nor calls"
        for call in message.tool_calls or ():
            for problem in _call(call, taken):
                yield f"message {number}: {problem}"
            if call.id in used:
                yield f"message {number}: call id {call.id} twice"
            used.add(call.id)
            open_calls.append(call.id)
    if open_calls:
        yield f"calls without a result: {open_calls}"


def _call(call: ChatCall, taken: Mapping[str, frozenset[str]]) -> Iterator[str]:
    name = call.function.name
    arguments = parsed_arguments(call.function.arguments)
    if not CALL_ID.match(call.id):
        yield f"call id {call.id!r} is not nine letters or digits"
    if name not in taken:
        yield f"call of {name!r}, which is not among the tools"
    if arguments is None:
        yield f"arguments of {call.id} are not the JSON text of an object"
    elif name in taken and (unknown := arguments.keys() - taken[name]):
        yield f"{call.id}: {name} has no {sorted(unknown)}"

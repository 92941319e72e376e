"""What must hold of every line: OpenAI's fine-tuning rules, and ours for types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from debrief.training.formats import CALL_ID, FUNCTION_NAME, MOST_TOOLS, parsed_arguments
from debrief.training.model import ChatCall, SampleMetadata, ToolSchema


class _StrictMessage(Struct, frozen=True, forbid_unknown_fields=True, tag_field="role"):
    """A message with the keys that belong to its role, and no others."""

    content: str


class StrictSystem(_StrictMessage, frozen=True, tag="system"):
    """A system message."""


class StrictUser(_StrictMessage, frozen=True, tag="user"):
    """A user message."""


class StrictAssistant(_StrictMessage, frozen=True, tag="assistant"):
    """An assistant message."""

    tool_calls: tuple[ChatCall, ...] | UnsetType = UNSET
    weight: Literal[0, 1] | UnsetType = UNSET


class StrictTool(_StrictMessage, frozen=True, tag="tool"):
    """A call's result."""

    tool_call_id: str


class _StrictMetadata(SampleMetadata, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _StrictLine(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictSystem | StrictUser | StrictAssistant | StrictTool, ...]
    tools: Raw
    metadata: _StrictMetadata


class _ToolRules(Struct, frozen=True):
    """What a line's tools allow in its messages."""

    problems: tuple[str, ...]
    arguments: dict[str, frozenset[str]]
    """The arguments that each function takes, by its name."""


_LINE = msgspec.json.Decoder(_StrictLine)
_TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


def validate_line(line: bytes | str) -> list[str]:
    """Return what is wrong with a line of a training set; an empty list when nothing is.

    Checked are the shape and types of every column, and the rules of OpenAI's fine-tuning
    format: roles and their keys, function names, declared tools, arguments, call ids, each call
    answered at once and each result called for, an assistant's words at the end.
    """
    try:
        decoded = _LINE.decode(line)
        rules = _rules_of(bytes(decoded.tools))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return [f"not a line of the expected shape: {error}"]
    return [*rules.problems, *_messages(decoded, rules.arguments)]


@lru_cache(maxsize=32)
def _rules_of(tools: bytes) -> _ToolRules:
    """Return the rules of a line's tools; most lines of a set have the same ones."""
    declared = _TOOLS.decode(tools)
    return _ToolRules(
        problems=tuple(_tools(declared)),
        arguments={
            tool.function.name: frozenset(tool.function.parameters.properties) for tool in declared
        },
    )


def _tools(tools: Sequence[ToolSchema]) -> Iterator[str]:
    if not 0 < len(tools) <= MOST_TOOLS:
        yield f"{len(tools)} tools, and there must be 1 to {MOST_TOOLS}"
    names = [tool.function.name for tool in tools]
    if len(set(names)) < len(names):
        yield "two tools have one name"
    for tool in tools:
        name, parameters = tool.function.name, tool.function.parameters
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

"""What must hold of every line: OpenAI's fine-tuning rules, and ours for types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from debrief.training.formats import CALL_ID, FUNCTION_NAME, parsed_arguments
from debrief.training.model import (
    ChatCall,
    ChatMessage,
    Role,
    SampleLine,
    SampleMetadata,
    ToolSchema,
)

_MOST_TOOLS = 128
_METADATA = frozenset(SampleMetadata.__struct_fields__)
_KEYS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "weight"},
    "tool": {"role", "content", "tool_call_id"},
}


class System(
    Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="role", tag="system"
):
    """A system message with the keys that belong to one, and no others."""

    role: ClassVar[Role] = "system"
    content: str


class User(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="role", tag="user"):
    """A user message."""

    role: ClassVar[Role] = "user"
    content: str


class Assistant(Struct, frozen=True, forbid_unknown_fields=True, tag_field="role", tag="assistant"):
    """An assistant message."""

    role: ClassVar[Role] = "assistant"
    content: str
    tool_calls: tuple[ChatCall, ...] | UnsetType = UNSET
    weight: Literal[0, 1] | UnsetType = UNSET


class Tool(Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="role", tag="tool"):
    """A call's result."""

    role: ClassVar[Role] = "tool"
    content: str
    tool_call_id: str


StrictMessage = System | User | Assistant | Tool


class _StrictMetadata(SampleMetadata, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _StrictLine(Struct, frozen=True, forbid_unknown_fields=True):
    messages: tuple[StrictMessage, ...]
    tools: tuple[ToolSchema, ...]
    metadata: _StrictMetadata


_DECODER = msgspec.json.Decoder(SampleLine)
_STRICT = msgspec.json.Decoder(_StrictLine)


def validate_line(line: bytes | str) -> list[str]:
    """Return what is wrong with a line of a training set; an empty list when nothing is.

    Checked are the shape and types of every column, and the rules of OpenAI's fine-tuning
    format: roles and their keys, function names, declared tools, arguments, call ids, each call
    answered at once and each result called for, an assistant's words at the end.
    """
    data = line.encode("utf-8", "surrogatepass") if isinstance(line, str) else line
    try:
        strict = _STRICT.decode(data)
        return list(conversation_problems(strict.messages, strict.tools))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return _told_in_full(data)


def _told_in_full(data: bytes) -> list[str]:
    """Return the problems of a line that has not the keys or types that it must have."""
    try:
        sample = _DECODER.decode(data)
        plain = msgspec.json.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return [f"not a line of the expected shape: {error}"]
    problems = [*_keys(plain), *conversation_problems(sample.messages, sample.tools)]
    return problems or ["not a line of the expected shape"]


def conversation_problems(
    messages: Sequence[ChatMessage | StrictMessage], tools: Sequence[ToolSchema]
) -> Iterator[str]:
    """Yield what the rules forbid in a conversation and its tools."""
    yield from _tools(tools)
    yield from _messages(messages, {tool.function.name: tool for tool in tools})


def _keys(plain: dict[str, object]) -> Iterator[str]:
    if set(plain) != {"messages", "tools", "metadata"}:
        yield f"top-level keys are {sorted(plain)}"
    metadata = plain.get("metadata")
    if isinstance(metadata, dict) and set(metadata) != _METADATA:
        yield f"metadata keys differ: {sorted(set(metadata) ^ _METADATA)}"
    messages = plain.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        extra = set(message) - _KEYS[message["role"]]
        if extra:
            yield f"message {number}: {sorted(extra)} do not belong to a {message['role']} message"


def _tools(tools: Sequence[ToolSchema]) -> Iterator[str]:
    if not 0 < len(tools) <= _MOST_TOOLS:
        yield f"{len(tools)} tools, and there must be 1 to {_MOST_TOOLS}"
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


def _messages(
    messages: Sequence[ChatMessage | StrictMessage], tools: dict[str, ToolSchema]
) -> Iterator[str]:
    if not messages:
        yield "no messages"
        return
    roles = [message.role for message in messages]
    for role in ("user", "assistant"):
        if role not in roles:
            yield f"no {role} message"
    last = messages[-1]
    if last.role != "assistant" or _calls(last) or not last.content:
        yield "does not end on an assistant's words"
    open_calls: list[str] = []
    used: set[str] = set()
    for number, message in enumerate(messages):
        where = f"message {number}"
        if message.role == "system" and number:
            yield f"{where}: a system message comes first or not at all"
        if message.role == "tool":
            answered = getattr(message, "tool_call_id", UNSET)
            if answered in open_calls:
                open_calls.remove(answered)
            else:
                yield f"{where}: a result of no open call: {answered!r}"
            continue
        if open_calls:
            yield f"{where}: before it, calls without a result: {open_calls}"
            open_calls = []
        calls = _calls(message)
        if message.role == "assistant" and not message.content and not calls:
            yield f"{where}: neither words nor calls"
        if getattr(message, "tool_calls", UNSET) == ():
            yield f"{where}: an empty list of calls"
        for call in calls:
            yield from (f"{where}: {problem}" for problem in _call(call, tools))
            if call.id in used:
                yield f"{where}: call id {call.id} twice"
            used.add(call.id)
            open_calls.append(call.id)
    if open_calls:
        yield f"calls without a result: {open_calls}"


def _calls(message: ChatMessage | StrictMessage) -> tuple[ChatCall, ...]:
    return getattr(message, "tool_calls", UNSET) or ()


def _call(call: ChatCall, tools: dict[str, ToolSchema]) -> Iterator[str]:
    if not CALL_ID.match(call.id):
        yield f"call id {call.id!r} is not nine letters or digits"
    tool = tools.get(call.function.name)
    if tool is None:
        yield f"call of {call.function.name!r}, which is not among the tools"
    arguments = parsed_arguments(call.function.arguments)
    if arguments is None:
        yield f"arguments of {call.id} are not the JSON text of an object"
    elif tool is not None:
        unknown = set(arguments) - set(tool.function.parameters.properties)
        if unknown:
            yield f"{call.id}: {tool.function.name} has no {sorted(unknown)}"

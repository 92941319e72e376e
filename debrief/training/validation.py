"""What must hold of every line: OpenAI's fine-tuning rules, and ours for types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from debrief.training.formats import CALL_ID, FUNCTION_NAME, MOST_TOOLS, parsed_arguments
from debrief.training.model import (
    ChatCall,
    ChatMessage,
    Role,
    SampleLine,
    SampleMetadata,
    ToolSchema,
)

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
    tools: Raw
    metadata: _StrictMetadata


class _ToolRules(Struct, frozen=True):
    """What a line's tools allow in its messages."""

    problems: tuple[str, ...]
    taken: dict[str, frozenset[str]]
    """The arguments that each function takes, by its name."""


_DECODER = msgspec.json.Decoder(SampleLine)
_STRICT = msgspec.json.Decoder(_StrictLine)
_TOOLS = msgspec.json.Decoder(tuple[ToolSchema, ...])


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
    rules = _rules_of(sample.tools)
    problems = [*_keys(plain), *rules.problems, *_messages(sample.messages, rules.taken)]
    return problems or ["not a line of the expected shape"]


def conversation_problems(messages: Sequence[StrictMessage], tools: Raw) -> Iterator[str]:
    """Yield what the rules forbid in a conversation and its tools.

    Args:
        messages: decoded.
        tools: undecoded, as most lines of a set have the same ones.

    Raises:
        msgspec.DecodeError: the tools have another shape.
    """
    rules = _rules_of_json(bytes(tools))
    yield from rules.problems
    yield from _messages(messages, rules.taken)


@lru_cache(maxsize=32)
def _rules_of_json(tools: bytes) -> _ToolRules:
    return _rules_of(_TOOLS.decode(tools))


def _rules_of(tools: Sequence[ToolSchema]) -> _ToolRules:
    return _ToolRules(
        problems=tuple(_tools(tools)),
        taken={
            tool.function.name: frozenset(tool.function.parameters.properties) for tool in tools
        },
    )


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


def _messages(
    messages: Sequence[ChatMessage | StrictMessage], taken: Mapping[str, frozenset[str]]
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
        role = roles[number]
        if role == "tool":
            answered = getattr(message, "tool_call_id", UNSET)
            if answered in open_calls:
                open_calls.remove(answered)
            else:
                yield f"message {number}: a result of no open call: {answered!r}"
            continue
        if open_calls:
            yield f"message {number}: before it, calls without a result: {open_calls}"
            open_calls = []
        if role == "system" and number:
            yield f"message {number}: a system message comes first or not at all"
        calls = getattr(message, "tool_calls", UNSET)
        if not calls:
            if role == "assistant" and not message.content:
                yield f"message {number}: neither words nor calls"
            if calls == ():
                yield f"message {number}: an empty list of calls"
            continue
        for call in calls:
            arguments = parsed_arguments(call.function.arguments)
            known = taken.get(call.function.name)
            if (
                known is None
                or arguments is None
                or not known.issuperset(arguments)
                or not CALL_ID.match(call.id)
            ):
                for problem in _call(call, arguments, known):
                    yield f"message {number}: {problem}"
            if call.id in used:
                yield f"message {number}: call id {call.id} twice"
            used.add(call.id)
            open_calls.append(call.id)
    if open_calls:
        yield f"calls without a result: {open_calls}"


def _calls(message: ChatMessage | StrictMessage) -> tuple[ChatCall, ...]:
    return getattr(message, "tool_calls", UNSET) or ()


def _call(
    call: ChatCall, arguments: dict[str, object] | None, known: frozenset[str] | None
) -> Iterator[str]:
    name = call.function.name
    if not CALL_ID.match(call.id):
        yield f"call id {call.id!r} is not nine letters or digits"
    if known is None:
        yield f"call of {name!r}, which is not among the tools"
    if arguments is None:
        yield f"arguments of {call.id} are not the JSON text of an object"
    elif known is not None and (unknown := set(arguments) - known):
        yield f"{call.id}: {name} has no {sorted(unknown)}"

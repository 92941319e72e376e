"""Stored lines taken apart as far as a form needs, and put together again for trainers.

Libraries that render chat templates want a call's arguments as an object; the stored line has
them as text, as OpenAI does. The text of an object is one: it is put in as it is. Contents go
from line to line as they are, undecoded.

Every stored line was checked by ``validate_line`` when it was written, and is read with its
checksum. So a converted line is asked only for what its form demands beyond those rules;
``problems`` of each form looks at a whole line by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import Role, SampleMetadata

Line: TypeAlias = bytes | memoryview
"""A line with its end."""
Made: TypeAlias = tuple[Line, Iterable[str]]
"""A finished line, and what is wrong with it by the rules of who reads it."""


class StoredFunction(Struct, frozen=True, gc=False):
    """The function of a stored call."""

    name: str
    arguments: str


class StoredCall(Struct, frozen=True, gc=False):
    """A stored call."""

    id: str
    function: StoredFunction


class StoredMessage(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A stored message, its content undecoded; without calls, it is one for chat templates too."""

    role: Role
    content: Raw
    tool_calls: tuple[StoredCall, ...] = ()
    tool_call_id: str = ""


class _Identity(Struct, frozen=True, gc=False):
    session_id: str


class StoredLine(Struct, frozen=True, gc=False):
    """A stored line, as far as most forms need it."""

    messages: tuple[StoredMessage, ...]
    tools: Raw
    metadata: _Identity


class ScoredLine(Struct, frozen=True, gc=False):
    """A stored line with all of its metadata."""

    messages: tuple[StoredMessage, ...]
    tools: Raw
    metadata: SampleMetadata


class Function(Struct, frozen=True, gc=False):
    """A called function, its arguments as an object."""

    name: str
    arguments: Raw


class Call(Struct, frozen=True, gc=False):
    """A call as chat templates take it."""

    id: str
    type: str
    function: Function


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A message as chat templates take it."""

    role: Role
    content: Raw
    tool_calls: tuple[Call, ...] = ()
    tool_call_id: str = ""


class _Named(Struct, frozen=True, gc=False):
    name: str


class _Declared(Struct, frozen=True, gc=False):
    function: _Named


STORED = msgspec.json.Decoder(StoredLine)
SCORED = msgspec.json.Decoder(ScoredLine)
ENCODER = msgspec.json.Encoder()
_QUOTE, _BRACE = b'"{'
_TOOLS = msgspec.json.Decoder(list[_Declared])


def rendered(messages: Iterable[StoredMessage]) -> list[Message]:
    """Return messages with their calls' arguments as objects, marks of weight left out.

    A stored message without calls is one already: it is taken as it is.
    """
    return [
        Message(
            role=message.role,
            content=message.content,
            tool_calls=tuple([_call(call) for call in message.tool_calls]),
        )
        if message.tool_calls
        else cast(Message, message)
        for message in messages
    ]


def arguments_of(call: StoredCall) -> str:
    """Return a call's arguments as JSON of an object on one line.

    Raises:
        msgspec.ValidationError: they are none, which no stored line has.
    """
    text = call.function.arguments
    if "\n" in text or "\r" in text:
        # Between tokens only: inside a string JSON has them escaped.
        text = text.replace("\n", " ").replace("\r", " ")
    text = text.strip()
    if not text.startswith("{"):
        raise msgspec.ValidationError(f"arguments of {call.id} are no object")
    return text


def text_of(tools: Raw) -> str:
    """Return tools as JSON text: a column of one type, whatever the tools take."""
    return bytes(tools).decode()


@lru_cache(maxsize=32)
def names_of(tools: str) -> frozenset[str]:
    """Return the names of the functions that a JSON text of tools declares; none when it is
    something else."""
    try:
        return frozenset(tool.function.name for tool in _TOOLS.decode(tools))
    except msgspec.DecodeError:
        return frozenset()


def template_problems(messages: Sequence[Message], tools: str) -> Iterator[str]:
    """Yield what a chat template would stumble over in a conversation with tools."""
    declared = names_of(tools)
    if not declared:
        yield "tools is not the JSON text of a list of functions"
    roles = [message.role for message in messages]
    if "user" not in roles or "assistant" not in roles:
        yield "no user message or no assistant message"
    if roles and roles[-1] != "assistant":
        yield "does not end on an assistant message"
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        if memoryview(message.content)[0] != _QUOTE:
            yield f"message {number}: its content is no text"
        if roles[number] == "tool":
            if message.tool_call_id not in open_calls:
                yield f"message {number}: a result of no open call"
            else:
                open_calls.remove(message.tool_call_id)
            continue
        if open_calls:
            yield f"message {number}: before it, calls without a result: {open_calls}"
            open_calls = []
        for call in message.tool_calls:
            open_calls.append(call.id)
            function = call.function
            if function.name not in declared:
                yield f"message {number}: {function.name} is not among the tools"
            if memoryview(function.arguments)[0] != _BRACE:
                yield f"message {number}: arguments of {call.id} are no object"
    if open_calls:
        yield f"calls without a result: {open_calls}"


def is_text(value: Raw) -> bool:
    """Tell whether undecoded JSON is a string."""
    return memoryview(value)[0] == _QUOTE


def _call(call: StoredCall) -> Call:
    arguments = Raw(arguments_of(call).encode())
    return Call(call.id, "function", Function(call.function.name, arguments))

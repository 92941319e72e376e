"""Stored lines taken apart as far as a form needs, and put together again for trainers.

Libraries that render chat templates want a call's arguments as an object; the stored line has
them as text, as OpenAI does. The text of an object is one: it is put in as it is. Contents go
from line to line as they are, undecoded and uncopied.

Every stored line was checked by ``validate_line`` when it was written, and is read with its
checksum. So a converted line is asked only for what its form demands beyond those rules;
``problems`` of each form looks at a whole line by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import Role
from debrief.training.outlines import (
    MESSAGES,
    METADATA,
    TOOLS,
    WEIGHT_SIZE,
    MessageOutline,
    Outline,
    opening_of,
    outline_of,
    unpacked,
)

Line: TypeAlias = bytes | memoryview
"""A line with its end, or a part of one."""
Made: TypeAlias = tuple[Sequence[Line], Iterable[str]]
"""A finished line in parts, and what is wrong with it by the rules of who reads it."""
Span: TypeAlias = tuple[int, int]
"""Of bytes of a line: the first, and the one after the last."""


class StoredLine:
    """A stored line.

    Args:
        line: its bytes.
        outline: where its parts are, as it is stored; looked for when empty.

    Raises:
        msgspec.DecodeError: the stored outline is none, or of another line.
    """

    __slots__ = ("line", "outline")

    def __init__(self, line: Line, outline: Line = b"") -> None:
        self.line = memoryview(line)
        self.outline = _read(outline, self.line) if outline else outline_of(bytes(line))
        """Where its parts are."""

    @property
    def opening(self) -> str:
        """The digest of its system message and first prompt."""
        return opening_of(self.line, self.outline)

    @property
    def messages(self) -> memoryview:
        """The JSON text of its messages."""
        return self.line[len(MESSAGES) : self.outline.messages_end]

    @property
    def tools(self) -> memoryview:
        """The JSON text of its tools."""
        return self.line[self.outline.messages_end + len(TOOLS) : self.outline.tools_end]

    @property
    def metadata(self) -> memoryview:
        """The JSON text of its metadata."""
        return self.line[self.outline.tools_end + len(METADATA) : -len(b"}\n")]

    @property
    def session_id(self) -> bytes:
        """The JSON text of its session's id."""
        return bytes(_IDENTITY.decode(self.metadata).session_id)


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


class _Identity(Struct, frozen=True, gc=False):
    session_id: Raw


class _Named(Struct, frozen=True, gc=False):
    name: str


class _Declared(Struct, frozen=True, gc=False):
    function: _Named


ENCODER = msgspec.json.Encoder()
_QUOTE, _BRACE, _ZERO = b'"{0'
_NOWHERE = (sys.maxsize, sys.maxsize)
_IDENTITY = msgspec.json.Decoder(_Identity)
_TEXT = msgspec.json.Decoder(str)
_TOOLS = msgspec.json.Decoder(list[_Declared])


def _read(stored: Line, line: memoryview) -> Outline:
    outline = unpacked(stored)
    tools, metadata = outline.messages_end, outline.tools_end
    if (
        line[tools : tools + len(TOOLS)] != TOOLS
        or line[metadata : metadata + len(METADATA)] != METADATA
    ):
        raise msgspec.DecodeError("this is the outline of another line")
    return outline


def rendered(stored: StoredLine, leave_out: Sequence[Span] = ()) -> list[Line]:
    """Return the JSON text of a line's messages in parts: their calls' arguments as objects,
    marks of weight left out.

    Args:
        stored: the line.
        leave_out: what else is left out, in order: whole messages with a comma.
    """
    line, outline = stored.line, stored.outline
    parts: list[Line] = []
    done = len(MESSAGES)
    spans = iter(leave_out)
    first, last = next(spans, _NOWHERE)
    for message in outline.messages:
        if message.start > first:
            parts.append(line[done:first])
            done = last
            first, last = next(spans, _NOWHERE)
        if message.start < done:
            continue
        for call in message.calls:
            start, end = call.start, call.end
            parts += line[done:start], object_in(line[start:end])
            done = end
        if message.weight:
            parts.append(line[done : message.weight])
            done = message.weight + WEIGHT_SIZE
    parts.append(line[done : outline.messages_end])
    return parts


def not_trained_on(stored: StoredLine, *, alternating: bool = False) -> list[Span]:
    """Return what a form without marks of weight leaves out of a line's messages, in order.

    That is each request with the answers to it when none of them is to be trained on, and what
    stands behind a turn's last results for its end, or broke off there. Where that is the end of
    the line, the results go as well: it then ends on calls.

    Args:
        stored: the line.
        alternating: whoever reads it wants a message of the model between results and a prompt,
            so that ends within the line stay.
    """
    outline = stored.outline
    messages = outline.messages
    for message in messages:
        if message.weight:
            break
    else:
        return []
    unmarked = [not _has_no_weight(stored, message) for message in messages]
    begins = [number for number, message in enumerate(messages) if message.role == "user"]
    exchanges = list(zip(begins, [*begins[1:], len(messages)], strict=True))
    trained = [
        any(unmarked[n] for n in range(first, after) if messages[n].role == "assistant")
        for first, after in exchanges
    ]
    while exchanges and not trained[len(exchanges) - 1]:
        exchanges.pop()
    spans: list[Span] = []
    for (first, after), is_trained in zip(exchanges[:-1], trained, strict=False):
        last = after - 1
        if not is_trained:
            spans.append((messages[first].begins, messages[after].begins))
        elif not (alternating or unmarked[last]) and messages[last - 1].role == "tool":
            spans.append((messages[last].begins, messages[after].begins))
    end = exchanges[-1][1] if exchanges else begins[0]
    if exchanges and not unmarked[end - 1]:
        results = end - 1
        while messages[results - 1].role == "tool":
            results -= 1
        end = results if results < end - 1 else end
    if end < len(messages):
        spans.append((messages[end].begins - 1, outline.messages_end - 1))
    return spans


def _has_no_weight(stored: StoredLine, message: MessageOutline) -> bool:
    return bool(message.weight) and stored.line[message.weight + WEIGHT_SIZE - 1] == _ZERO


def text_of(tools: Line) -> bytes:
    """Return the JSON text of tools as JSON text of a string: a column of one type, whatever the
    tools take."""
    return _text_of(bytes(tools))


@lru_cache(maxsize=32)
def _text_of(tools: bytes) -> bytes:
    return ENCODER.encode(tools.decode())


def object_in(arguments: Line) -> bytes:
    """Return the object, on one line, whose text a JSON string is.

    Raises:
        msgspec.DecodeError: there is none, which no stored line has.
    """
    text = _TEXT.decode(arguments)
    if "\n" in text or "\r" in text:
        # Between tokens only: inside a string JSON has them escaped.
        text = text.replace("\n", " ").replace("\r", " ")
    text = text.strip()
    if not text.startswith("{"):
        raise msgspec.DecodeError("a call's arguments are no object")
    return text.encode()


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


def is_text(value: Raw) -> bool:
    """Return whether undecoded JSON is a string."""
    return memoryview(value)[0] == _QUOTE

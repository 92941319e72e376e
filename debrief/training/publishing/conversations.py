"""Stored lines taken apart as far as a form needs, and put together again for trainers.

Libraries that render chat templates want a call's arguments as an object; the stored line has
them as text, as OpenAI does. The text of an object is one: it is put in as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from debrief.training.model import ChatCall, ChatMessage, Role, SampleLine, ToolSchema

DECODER = msgspec.json.Decoder(SampleLine)
_ENCODER = msgspec.json.Encoder()


class Function(Struct, frozen=True, gc=False):
    """A called function, its arguments as an object."""

    name: str
    arguments: Raw


class Call(Struct, frozen=True):
    """A call as chat templates take it."""

    id: str
    type: str
    function: Function


class Message(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message as chat templates take it."""

    role: Role
    content: str
    tool_calls: list[Call] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


def rendered(messages: Iterable[ChatMessage]) -> list[Message]:
    """Return messages with their calls' arguments as objects, marks of weight left out."""
    return [
        Message(
            role=message.role,
            content=message.content,
            tool_calls=[_call(call) for call in message.tool_calls]
            if message.tool_calls
            else UNSET,
            tool_call_id=message.tool_call_id,
        )
        for message in messages
    ]


def arguments_of(call: ChatCall) -> Raw:
    """Return a call's arguments as JSON of an object on one line."""
    text = call.function.arguments
    if "\n" in text or "\r" in text:
        # Between tokens only: inside a string JSON has them escaped.
        text = text.replace("\n", " ").replace("\r", " ")
    return Raw(text.encode())


def tools_text(tools: Sequence[ToolSchema]) -> str:
    """Return tools as JSON text: a column of one type, whatever the tools take."""
    return _ENCODER.encode(tools).decode()


def _call(call: ChatCall) -> Call:
    return Call(call.id, call.type, Function(call.function.name, arguments_of(call)))

"""Calls made at once told one after the other: call, result, call, result.

Some chat templates refuse a message with several calls. Every template takes them one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType
from msgspec.structs import replace

from debrief.training.model import Role
from debrief.training.publishing.conversations import ENCODER, StoredLine

NOTE = "Calls made at once stand one after the other, each before its result."


class _Call(Struct, frozen=True, gc=False):
    id: str
    type: str
    function: Raw


class _Message(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    role: Role
    content: Raw
    tool_calls: tuple[_Call, ...] = ()
    tool_call_id: str = ""
    weight: int | UnsetType = UNSET


class _Line(Struct, frozen=True, gc=False):
    messages: tuple[_Message, ...]
    tools: Raw
    metadata: Raw


_DECODER = msgspec.json.Decoder(_Line)
_NO_WORDS = Raw(b'""')


def with_single_calls(line: StoredLine) -> StoredLine:
    """Return a stored line without a message of several calls; itself when it has none.

    What a model says beside its calls stands with the first of them.
    """
    if all(len(message.calls) < 2 for message in line.outline.messages):
        return line
    stored = _DECODER.decode(line.line)
    messages = tuple(_one_by_one(stored.messages))
    return StoredLine(ENCODER.encode_lines((replace(stored, messages=messages),)))


def _one_by_one(messages: Sequence[_Message]) -> Iterator[_Message]:
    told: set[int] = set()
    for number, message in enumerate(messages):
        if number in told:
            continue
        if len(message.tool_calls) < 2:
            yield message
            continue
        results = {}
        for place in range(number + 1, len(messages)):
            if messages[place].role != "tool":
                break
            results[messages[place].tool_call_id] = messages[place]
            told.add(place)
        content = message.content
        for call in message.tool_calls:
            yield replace(message, content=content, tool_calls=(call,))
            yield results[call.id]
            content = _NO_WORDS

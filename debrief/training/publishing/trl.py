"""For TRL: conversations that its trainers render with a model's own chat template."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import orjson
from msgspec import Struct

from debrief.training.publishing.columns import Columns, ListOf
from debrief.training.publishing.conversations import DECODER, Message, rendered, tools_text

COLUMNS: Columns = {"messages": ListOf("json"), "tools": "string", "session_id": "string"}
NOTE = (
    "`arguments` are objects, as chat templates want them, and `tools` is JSON text, which TRL "
    "reads. There are no weights: with `assistant_only_loss` the few assistant messages in round "
    "brackets that stand for the end of a turn are trained on as well."
)

_ENCODER = msgspec.json.Encoder()


class _Line(Struct, frozen=True):
    messages: list[Message]
    tools: str
    session_id: str


_CHECKED = msgspec.json.Decoder(_Line)


def convert(line: bytes, _: object = None) -> Iterator[bytes]:
    """Yield the stored line as TRL takes it."""
    sample = DECODER.decode(line)
    made = _Line(rendered(sample.messages), tools_text(sample.tools), sample.metadata.session_id)
    yield _ENCODER.encode(made) + b"\n"


def problems(line: bytes) -> Iterator[str]:
    """Yield what TRL or a chat template would stumble over."""
    try:
        made = _CHECKED.decode(line)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    yield from conversation_problems(made.messages, made.tools)


def conversation_problems(messages: list[Message], tools: str) -> Iterator[str]:
    """Yield what a chat template would stumble over in a conversation with tools."""
    declared = names_of(tools)
    if not declared:
        yield "tools is not the JSON text of a list of functions"
    roles = [message.role for message in messages]
    if "user" not in roles or "assistant" not in roles:
        yield "no user message or no assistant message"
    open_calls: list[str] = []
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in open_calls:
                yield f"message {number}: a result of no open call"
            else:
                open_calls.remove(str(message.tool_call_id))
            continue
        if open_calls:
            yield f"message {number}: before it, calls without a result: {open_calls}"
            open_calls = []
        for call in message.tool_calls or ():
            open_calls.append(call.id)
            if call.function.name not in declared:
                yield f"message {number}: {call.function.name} is not among the tools"
            if bytes(call.function.arguments)[:1] != b"{":
                yield f"message {number}: arguments of {call.id} are no object"
    if roles and roles[-1] != "assistant":
        yield "does not end on an assistant message"


def names_of(tools: str) -> set[str]:
    """Return the names of the functions that a JSON text of tools declares."""
    try:
        listed = orjson.loads(tools)
        return {tool["function"]["name"] for tool in listed}
    except (ValueError, TypeError, KeyError):
        return set()

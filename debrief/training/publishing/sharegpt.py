"""For LLaMA-Factory and others that read ShareGPT: strictly alternating turns.

A human turn or an observation stands in every odd place, the model's words or one call in every
even one; so several calls at once become one after the other, each before its result. The form
has no place for words beside a call.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import ChatMessage, ToolFunction
from debrief.training.publishing.columns import Columns, ListOf, Record
from debrief.training.publishing.conversations import DECODER, Function, arguments_of

COLUMNS: Columns = {
    "conversations": ListOf(Record({"from": "string", "value": "string"})),
    "system": "string",
    "tools": "string",
    "session_id": "string",
}
NOTE = (
    "Calls made at once stand one after the other, each before its result. The form has no place "
    "for what a model says beside a call: such words are left out, and `messages` or `trl` have "
    "them. `dataset_info.json` is for LLaMA-Factory."
)
DATASET_INFO = {
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
}

_HUMAN, _MODEL = ("human", "observation"), ("gpt", "function_call")
_ENCODER = msgspec.json.Encoder()


class Turn(Struct, frozen=True, rename={"speaker": "from"}):
    """A turn: who speaks, and what."""

    speaker: Literal["human", "observation", "gpt", "function_call"]
    value: str


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    conversations: list[Turn]
    system: str
    tools: str
    session_id: str


class _CalledFunction(Struct, frozen=True):
    name: str
    arguments: dict[str, Raw]


_CHECKED = msgspec.json.Decoder(_Line)
_CALL = msgspec.json.Decoder(_CalledFunction)
_TOOLS = msgspec.json.Decoder(list[ToolFunction])


def convert(line: bytes, _: object = None) -> Iterator[bytes]:
    """Yield the stored line as turns."""
    sample = DECODER.decode(line)
    messages = sample.messages
    system = messages[0].content if messages[0].role == "system" else ""
    made = _Line(
        conversations=list(_turns(messages)),
        system=system,
        tools=_ENCODER.encode([tool.function for tool in sample.tools]).decode(),
        session_id=sample.metadata.session_id,
    )
    yield _ENCODER.encode(made) + b"\n"


def problems(line: bytes) -> Iterator[str]:
    """Yield what LLaMA-Factory would skip a line for, or fail on."""
    try:
        made = _CHECKED.decode(line)
        declared = {tool.name for tool in _TOOLS.decode(made.tools)}
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    if len(made.conversations) % 2 or not made.conversations:
        yield f"{len(made.conversations)} turns, and there must be an even number of them"
    for number, turn in enumerate(made.conversations):
        if turn.speaker not in (_MODEL if number % 2 else _HUMAN):
            yield f"turn {number}: {turn.speaker} cannot stand here"
        if turn.speaker == "function_call":
            try:
                name = _CALL.decode(turn.value).name
            except msgspec.DecodeError as error:
                yield f"turn {number}: not a call: {error}"
                continue
            if name not in declared:
                yield f"turn {number}: {name} is not among the tools"


def _turns(messages: tuple[ChatMessage, ...]) -> Iterator[Turn]:
    results = {m.tool_call_id: m.content for m in messages if m.role == "tool"}
    for message in messages:
        if message.role == "user":
            yield Turn("human", message.content)
        elif message.role == "assistant":
            for call in message.tool_calls or ():
                called = Function(call.function.name, arguments_of(call))
                yield Turn("function_call", _ENCODER.encode(called).decode())
                yield Turn("observation", results[call.id])
            if not message.tool_calls:
                yield Turn("gpt", message.content)

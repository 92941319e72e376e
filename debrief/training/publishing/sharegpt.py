"""For LLaMA-Factory and others that read ShareGPT: strictly alternating turns.

A human turn or an observation stands in every odd place, the model's words or one call in every
even one; so several calls at once become one after the other, each before its result. The form
has no place for words beside a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import ToolFunction
from debrief.training.publishing.columns import Columns, ListOf, Record
from debrief.training.publishing.conversations import (
    ENCODER,
    STORED,
    Line,
    Made,
    StoredMessage,
    arguments_of,
    is_text,
)

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

_HUMAN, _MODEL = frozenset({"human", "observation"}), frozenset({"gpt", "function_call"})


class Turn(Struct, frozen=True, rename={"speaker": "from"}, gc=False):
    """A turn: who speaks, and what, as JSON text of a string."""

    speaker: Literal["human", "observation", "gpt", "function_call"]
    value: Raw


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    conversations: list[Turn]
    system: Raw
    tools: str
    session_id: str


class _CalledFunction(Struct, frozen=True, gc=False):
    name: str
    arguments: dict[str, Raw]


class _StoredTool(Struct, frozen=True, gc=False):
    function: Raw


_CHECKED = msgspec.json.Decoder(_Line)
_TEXT = msgspec.json.Decoder(str)
_CALL = msgspec.json.Decoder(_CalledFunction)
_STORED_TOOLS = msgspec.json.Decoder(list[_StoredTool])
_TOOLS = msgspec.json.Decoder(list[ToolFunction])


def convert(line: Line, _: object = None) -> Iterator[Made]:
    """Yield the stored line as turns."""
    stored = STORED.decode(line)
    first = stored.messages[0]
    made = _Line(
        conversations=_turns(stored.messages),
        system=first.content if first.role == "system" else Raw(b'""'),
        tools=_functions(bytes(stored.tools)),
        session_id=stored.metadata.session_id,
    )
    yield ENCODER.encode_lines((made,)), _order_problems(made.conversations)


def problems(line: bytes) -> Iterator[str]:
    """Yield what LLaMA-Factory would skip a line for, or fail on."""
    try:
        made = _CHECKED.decode(line)
        declared = _declared(made.tools)
    except msgspec.DecodeError as error:
        yield f"not a line of the expected shape: {error}"
        return
    if not is_text(made.system):
        yield "system is no text"
    yield from _order_problems(made.conversations)
    for number, turn in enumerate(made.conversations):
        if not is_text(turn.value):
            yield f"turn {number}: its value is no text"
        elif turn.speaker == "function_call":
            try:
                name = _CALL.decode(_TEXT.decode(turn.value)).name
            except msgspec.DecodeError as error:
                yield f"turn {number}: not a call: {error}"
                continue
            if name not in declared:
                yield f"turn {number}: {name} is not among the tools"


def _order_problems(turns: Sequence[Turn]) -> Iterator[str]:
    if len(turns) % 2 or not turns:
        yield f"{len(turns)} turns, and there must be an even number of them"
    speakers = [turn.speaker for turn in turns]
    if _HUMAN.issuperset(speakers[::2]) and _MODEL.issuperset(speakers[1::2]):
        return
    for number, turn in enumerate(turns):
        if turn.speaker not in (_MODEL if number % 2 else _HUMAN):
            yield f"turn {number}: {turn.speaker} cannot stand here"


def _turns(messages: Sequence[StoredMessage]) -> list[Turn]:
    results = {message.tool_call_id: message.content for message in messages}
    turns: list[Turn] = []
    for message in messages:
        role, calls = message.role, message.tool_calls
        if role == "user":
            turns.append(Turn("human", message.content))
        elif calls:
            for call in calls:
                name = _json_of(call.function.name)
                called = f'{{"name":{name},"arguments":{arguments_of(call)}}}'
                turns.append(Turn("function_call", Raw(ENCODER.encode(called))))
                turns.append(Turn("observation", results[call.id]))
        elif role == "assistant":
            turns.append(Turn("gpt", message.content))
    return turns


@lru_cache(maxsize=256)
def _json_of(name: str) -> str:
    return ENCODER.encode(name).decode()


@lru_cache(maxsize=32)
def _functions(tools: bytes) -> str:
    """Return the JSON text of the functions alone of a stored line's tools."""
    return ENCODER.encode([tool.function for tool in _STORED_TOOLS.decode(tools)]).decode()


@lru_cache(maxsize=32)
def _declared(tools: str) -> frozenset[str]:
    return frozenset(tool.name for tool in _TOOLS.decode(tools))

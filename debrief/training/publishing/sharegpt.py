"""For LLaMA-Factory and others that read ShareGPT: strictly alternating turns.

A human turn or an observation stands in every odd place, the model's words or one call in every
even one; so several calls at once become one after the other, each before its result. The form
has no place for words beside a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec
from msgspec import Raw, Struct

from debrief.training.model import ToolFunction
from debrief.training.publishing.columns import Columns, ListOf, Record
from debrief.training.publishing.conversations import (
    ENCODER,
    Line,
    Made,
    StoredLine,
    is_text,
    not_trained_on,
    object_in,
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
    "them. Left out are answers to a request that is not known, too, and a conversation whose end "
    "the transcript lacks ends on a call; within it a text in round brackets stands for an end, "
    "since turns must alternate. `dataset_info.json` is for LLaMA-Factory."
)
DATASET_INFO = {
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
}

_HUMAN, _MODEL = frozenset({"human", "observation"}), frozenset({"gpt", "function_call"})


Speaker: TypeAlias = Literal["human", "observation", "gpt", "function_call"]
_HUMAN_BEGINS, _MODEL_BEGINS = b'"},{"from":"human","value":"', b'"},{"from":"gpt","value":"'
_BRACE = ord("{")
_CALL_ENDS = b'}"},{"from":"observation","value":"'


class _Turn(Struct, frozen=True, rename={"speaker": "from"}, gc=False):
    speaker: Speaker
    value: Raw


class _Line(Struct, frozen=True, forbid_unknown_fields=True):
    conversations: list[_Turn]
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


def convert(stored: StoredLine, _: object = None) -> Iterator[Made]:
    """Yield the stored line as turns."""
    line, messages = stored.line, stored.outline.messages
    first = messages[0]
    system = bytes(line[first.start : first.end]) if first.role == "system" else b'""'
    speakers, parts = _turns(stored)
    rest = b'"}],"system":%b,"tools":%b,"session_id":%b}\n' % (
        system,
        _functions(bytes(stored.tools)),
        stored.session_id,
    )
    yield (*parts, rest), _order_problems(speakers)


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
    yield from _order_problems([turn.speaker for turn in made.conversations])
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


def _order_problems(speakers: Sequence[Speaker]) -> Iterator[str]:
    if len(speakers) % 2 or not speakers:
        yield f"{len(speakers)} turns, and there must be an even number of them"
    if _HUMAN.issuperset(speakers[::2]) and _MODEL.issuperset(speakers[1::2]):
        return
    for number, speaker in enumerate(speakers):
        if speaker not in (_MODEL if number % 2 else _HUMAN):
            yield f"turn {number}: {speaker} cannot stand here"


def _turns(stored: StoredLine) -> tuple[list[Speaker], list[Line]]:
    """Return who speaks, and the JSON text of the turns in parts, but for its end.

    Texts go from string to string without their quotes, which stand in the parts between.
    """
    line, messages = stored.line, stored.outline.messages
    results = {
        message.answers: line[message.start + 1 : message.end - 1]
        for message in messages
        if message.answers
    }
    speakers: list[Speaker] = []
    parts: list[Line] = []
    for first, last in not_trained_on(stored, alternating=True):
        messages = tuple(one for one in messages if not first <= one.start < last)
    for message in messages:
        if message.role == "user":
            speakers.append("human")
            parts += _HUMAN_BEGINS, line[message.start + 1 : message.end - 1]
        elif message.calls:
            for call in message.calls:
                if line[call.start + 1] != _BRACE:
                    object_in(line[call.start : call.end])
                speakers += "function_call", "observation"
                parts += (
                    _call_begins(call.name),
                    line[call.start + 1 : call.end - 1],
                    _CALL_ENDS,
                    results[call.id],
                )
        elif message.role == "assistant":
            speakers.append("gpt")
            parts += _MODEL_BEGINS, line[message.start + 1 : message.end - 1]
    if speakers[-1:] == ["observation"]:
        speakers.pop()
        parts[-2:] = [b"}"]
    if parts:
        parts[0] = b'{"conversations":[' + bytes(parts[0]).removeprefix(b'"},')
    return speakers, parts


@lru_cache(maxsize=256)
def _call_begins(name: str) -> bytes:
    """Return what stands before a call's arguments: the text of an object, in a JSON string."""
    return (
        b'"},{"from":"function_call","value":"{\\"name\\":\\"%b\\",\\"arguments\\":' % name.encode()
    )


@lru_cache(maxsize=32)
def _functions(tools: bytes) -> bytes:
    """Return the functions alone of a stored line's tools, as JSON text of a string."""
    functions = ENCODER.encode([tool.function for tool in _STORED_TOOLS.decode(tools)])
    return ENCODER.encode(functions.decode())


@lru_cache(maxsize=32)
def _declared(tools: str) -> frozenset[str]:
    return frozenset(tool.name for tool in _TOOLS.decode(tools))

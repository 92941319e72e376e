"""For LLaMA-Factory and others that read ShareGPT: strictly alternating turns.

A human turn or an observation stands in every odd place, the model's words or one call in every
even one; so several calls at once become one after the other, each before its result. The form
has no place for words beside a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct

from debrief.training.publishing.form import Form, StoredLine, trained_messages

_DATASET = {
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
}
_HUMAN, _MODEL = ("human", "observation"), ("gpt", "function_call")


class _Tool(Struct, frozen=True):
    function: Raw


_TOOLS = msgspec.json.Decoder(list[_Tool])


def convert(line: StoredLine, _: object = None) -> Iterator[dict[str, Any]]:
    """Yield the stored line as turns.

    Raises:
        ValueError: its turns do not alternate.
    """
    first = line.messages[0]
    turns = _turns(line)
    _check_order([turn["from"] for turn in turns])
    functions = [tool.function for tool in _TOOLS.decode(line.tools)]
    yield {
        "conversations": turns,
        "system": first.content if first.role == "system" else "",
        "tools": msgspec.json.encode(functions).decode(),
        "session_id": line.rating.session_id,
    }


def _turns(line: StoredLine) -> list[dict[str, str]]:
    results = {one.tool_call_id: one.content for one in line.messages if one.role == "tool"}
    turns: list[dict[str, str]] = []
    for message in trained_messages(line.messages, alternating=True):
        if message.role == "user":
            turns.append({"from": "human", "value": message.content})
        elif message.tool_calls:
            for call in message.tool_calls:
                name, arguments = call.function.name, call.function.arguments
                called = f'{{"name":"{name}","arguments":{arguments}}}'
                turns.append({"from": "function_call", "value": called})
                turns.append({"from": "observation", "value": results[call.id]})
        elif message.role == "assistant":
            turns.append({"from": "gpt", "value": message.content})
    return turns[:-1] if turns and turns[-1]["from"] == "observation" else turns


def _check_order(speakers: Sequence[str]) -> None:
    if len(speakers) % 2 or not speakers:
        raise ValueError(f"{len(speakers)} turns, and there must be an even number of them")
    for number, speaker in enumerate(speakers):
        if speaker not in (_MODEL if number % 2 else _HUMAN):
            raise ValueError(f"turn {number}: {speaker} cannot stand here")


def dataset_info(files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the file in which LLaMA-Factory looks for datasets."""
    info = {name: {"file_name": file, **_DATASET} for name, file in files.items()}
    return {"dataset_info.json": msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n"}


FORM = Form(
    name="sharegpt",
    reader="LLaMA-Factory and others that read ShareGPT",
    columns={
        "conversations": [{"from": "string", "value": "string"}],
        "system": "string",
        "tools": "string",
        "session_id": "string",
    },
    note=(
        "Calls made at once stand one after the other, each before its result. The form has no "
        "place for what a model says beside a call: such words are left out, and `messages` or "
        "`trl` have them. Left out are answers to a request that is not known, too, and a "
        "conversation whose end the transcript lacks ends on a call; within it a text in round "
        "brackets stands for an end, since turns must alternate. `dataset_info.json` is for "
        "LLaMA-Factory."
    ),
    convert=convert,
    of_records=True,
    extra_files=dataset_info,
)

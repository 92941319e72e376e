"""The forms in which training sets are exported, by name, and those of conversations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from debrief.errors import InputError
from debrief.training.formats import TOOLS
from debrief.training.model import ChatMessage, SampleMetadata, ToolSchema
from debrief.training.publishing.form import (
    Columns,
    Form,
    StoredLine,
    column_of,
    template_messages,
    without_marks,
)
from debrief.training.publishing.labels import KTO
from debrief.training.publishing.preferences import PREFERENCE
from debrief.training.publishing.rewards import RL
from debrief.training.publishing.rows import Messages, first_row, rows_of

MESSAGES = Form(
    name="messages",
    reader="`datasets`, and whatever reads OpenAI's chat form",
    columns={
        "messages": ["json"],
        "tools": ["json"],
        "metadata": column_of(SampleMetadata),
    },
    note="The stored lines themselves, `arguments` as JSON text.",
    convert=lambda line: (
        {
            "messages": without_marks(line.messages),
            "tools": line.tools,
            "metadata": line.metadata,
        },
    ),
    of_conversations=True,
)


def _trl(line: StoredLine) -> Iterator[dict[str, Any]]:
    for row in rows_of(line.messages):
        yield {
            "prompt": template_messages(row.history),
            "completion": template_messages(row.answers),
            **_beside(line),
        }


def _beside(line: StoredLine) -> dict[str, Any]:
    about = line.about
    return {
        "tools": bytes(line.tools).decode(),
        "session_id": about.session_id,
        "reviewed": about.reviewed,
    }


_BESIDE: Columns = {"tools": "string", "session_id": "string", "reviewed": "bool"}
TRL = Form(
    name="trl",
    reader="TRL's `SFTTrainer`",
    columns={"prompt": ["json"], "completion": ["json"], **_BESIDE},
    note=(
        "A row for each stretch of answers that are trained on: it is the `completion`, with the "
        "requests and results between them, and all that came before it is the `prompt`, so a line "
        "with answers in it that are not trained on gives several rows, and each repeats what came "
        "before. `arguments` are objects, as chat templates want them, and `tools` is JSON text, "
        "which TRL reads."
    ),
    convert=_trl,
    rows=rows_of,
    of_conversations=True,
)


def _flagged(line: StoredLine, flag: str) -> Iterator[dict[str, Any]]:
    """Yield a line whose assistant messages say whether they are trained on."""
    messages: list[dict[str, Any]] = msgspec.to_builtins(without_marks(line.messages))
    for message in messages:
        if message["role"] == "assistant":
            message[flag] = message.pop("weight", 1) != 0
    yield {"messages": messages, **_beside(line)}


def _flag_form(name: str, reader: str, flag: str, program: str) -> Form:
    return Form(
        name=name,
        reader=reader,
        columns={"messages": ["json"], **_BESIDE},
        note=(
            f"`{flag}` says of each assistant message whether it is trained on, so nothing is left "
            f"out. `arguments` and `tools` are JSON text, which {program} reads."
        ),
        convert=lambda line: _flagged(line, flag),
        of_conversations=True,
    )


AXOLOTL = _flag_form(
    "axolotl",
    "axolotl's `chat_template` datasets with `message_field_training: train`",
    *("train", "axolotl"),
)
SWIFT = _flag_form("swift", "ms-swift's `swift sft`", "loss", "ms-swift")

MIN_LINES = 10
"""Lines that a file must have."""
LONGEST_DESCRIPTION = 1_024
"""Characters of a function's description; with more, the service refuses all functions."""
_CUT = " …"


def _openai(line: StoredLine) -> Iterator[dict[str, Any]]:
    yield {"messages": without_marks(line.messages), "tools": _shortened(bytes(line.tools))}


@lru_cache(maxsize=32)
def _shortened(tools: bytes) -> Raw | list[ToolSchema]:
    declared = TOOLS.decode(tools)
    if all(len(tool.function.description) <= LONGEST_DESCRIPTION for tool in declared):
        return Raw(tools)
    return [
        replace(tool, function=replace(tool.function, description=_cut(tool.function.description)))
        for tool in declared
    ]


def _cut(description: str) -> str:
    if len(description) <= LONGEST_DESCRIPTION:
        return description
    kept = description[: LONGEST_DESCRIPTION - len(_CUT)]
    return (kept.rpartition(" ")[0] or kept) + _CUT


OPENAI = Form(
    name="openai",
    reader="OpenAI's fine-tuning service",
    columns={"messages": ["json"], "tools": ["json"]},
    note=(
        f"`messages` and `tools` alone. The service asks for at least {MIN_LINES} lines a file, "
        "which `--one-file` helps with, and cuts lines that are over its model's limit of tokens, "
        "which `--max-tokens` prevents. `weight` 0 marks what is not trained on. Descriptions of "
        f"tools are cut at {LONGEST_DESCRIPTION:,} characters, more of which the service does not "
        "take."
    ),
    convert=_openai,
    takes_reasoning=False,
    is_closed=True,
    of_conversations=True,
    min_lines=MIN_LINES,
)
MISTRAL = Form(
    name="mistral",
    reader="Mistral's fine-tuning, by the rules of `mistral-common` from tokenizer v5 on",
    columns={"messages": ["json"], "tools": ["json"]},
    note=(
        "`messages` and `tools` alone; `weight` 0 marks what is not trained on. Tokenizers before "
        "v5 refuse words beside a call."
    ),
    convert=lambda line: ({"messages": without_marks(line.messages), "tools": line.tools},),
    takes_reasoning=False,
    is_closed=True,
    of_conversations=True,
)

_DATASET = {
    "formatting": "sharegpt",
    "columns": {"messages": "conversations", "system": "system", "tools": "tools"},
}
_SPEAKERS = ("human", "observation"), ("gpt", "function_call")
_TAGS = ("<tool_call>", "</tool_call>", "<think>", "</think>")


def _sharegpt(line: StoredLine) -> Iterator[dict[str, Any]]:
    """Yield the line, up to the first answer that is not trained on, as strictly alternating turns:
    a human turn or an observation stands in every odd place, the model's words or one call in every
    even one.

    Raises:
        ValueError: its turns do not alternate.
    """
    first = line.messages[0]
    for row in first_row(line.messages):
        turns = _turns([*row.history, *row.answers], line.messages)
        _check_order([turn["from"] for turn in turns])
        yield {
            "conversations": turns,
            "system": first.content if first.role == "system" else "",
            **_beside(line),
            "tools": msgspec.json.encode(line.functions).decode(),
        }


def _turns(messages: Messages, line: Messages) -> list[dict[str, str]]:
    """Return the turns of a line's first messages; a call that ends them has no result there."""
    results = {message.tool_call_id: message.content for message in line if message.role == "tool"}
    turns: list[dict[str, str]] = []
    for message in messages:
        if message.role == "user":
            turns.append({"from": "human", "value": message.content})
        elif message.tool_calls:
            beside = _words(message)
            for call in message.tool_calls:
                name, arguments = call.function.name, call.function.arguments
                called = f'{{"name":"{name}","arguments":{arguments}}}'
                turns.append({"from": "function_call", "value": _called(beside, called)})
                turns.append({"from": "observation", "value": results[call.id]})
                beside = ""
        elif message.role == "assistant":
            turns.append({"from": "gpt", "value": _words(message)})
    return turns[:-1] if turns and turns[-1]["from"] == "observation" else turns


def _words(message: ChatMessage) -> str:
    """Return what the model thought and said, as LLaMA-Factory reads them."""
    thought = message.reasoning_content
    return (f"<think>\n{thought}\n</think>\n\n" if thought else "") + message.content


def _called(words: str, call: str) -> str:
    """Return a call with the words beside it.

    LLaMA-Factory looks for its tags in all of the value, so a call in which one stands has it
    spelled otherwise, which JSON allows. Words that hold the tag of a call would be cut there.
    """
    if any(tag in call for tag in _TAGS):
        call = call.replace("<", "\\u003c")
    if not words.strip():
        return call
    words = words.replace("<tool_call>", "&lt;tool_call>")
    return f"{words.rstrip()}\n<tool_call>\n{call}\n</tool_call>"


def _check_order(speakers: Sequence[str]) -> None:
    for number, speaker in enumerate(speakers):
        if speaker not in _SPEAKERS[number % 2]:
            raise ValueError(f"turn {number}: {speaker} cannot stand here")


def dataset_info(files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the file in which LLaMA-Factory looks for datasets."""
    info = {name: {"file_name": file, **_DATASET} for name, file in files.items()}
    return {"dataset_info.json": msgspec.json.format(msgspec.json.encode(info), indent=2) + b"\n"}


SHAREGPT = Form(
    name="sharegpt",
    reader="LLaMA-Factory",
    columns={
        "conversations": [{"from": "string", "value": "string"}],
        "system": "string",
        **_BESIDE,
    },
    note=(
        "Calls made at once stand one after the other, each before its result; words beside calls "
        "stand before the first, and the call between `<tool_call>` tags. LLaMA-Factory trains on "
        "all that the model said and called, so a line ends before the first answer that is not to "
        "be trained on, or the text that stands for one since turns must alternate; what would "
        "follow is left out. `dataset_info.json` is for LLaMA-Factory."
    ),
    convert=_sharegpt,
    rows=first_row,
    of_conversations=True,
    extra_files=dataset_info,
)


FORMS: dict[str, Form] = {
    form.name: form
    for form in (MESSAGES, TRL, AXOLOTL, SWIFT, SHAREGPT, OPENAI, MISTRAL, PREFERENCE, KTO, RL)
}


def form_named(name: str) -> Form:
    """Return a form.

    Raises:
        InputError: there is none of that name.
    """
    if name not in FORMS:
        raise InputError(f"form {name}", "is not known", f"There are: {', '.join(FORMS)}.")
    return FORMS[name]

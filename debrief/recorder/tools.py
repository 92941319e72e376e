"""The three tools of a record, what their calls say, and the contract's published JSON Schemas.

``schemas/`` holds the schemas for recorders and readers in other languages, and ``tools.json``: the
definitions in every record, which never change. ``python -m debrief.recorder.tools`` writes the
schemas anew after a change of the contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from pydantic import BaseModel

from debrief.recorder import contracts
from debrief.recorder.contracts import APPLY_PATCH, READ_FILE, Record
from debrief.recorder.encoding import decode

FOLDER = Path(__file__).parent / "schemas"
PATCHED = '{"ok":true}'
"""Result of ``apply_patch``."""
_TOOLS_FILE = "tools.json"
_MODELS = (
    *(Record, contracts.Upload, contracts.NewTask, contracts.Task, contracts.StoredSession),
    *(contracts.ReadFile, contracts.ApplyPatch, contracts.RunCommand),
)
TOOLS = tuple(
    contracts.ToolDefinition(**tool)
    for tool in json.loads((FOLDER / _TOOLS_FILE).read_text(encoding="utf-8"))
)
"""The definitions in every record, in this order."""

Arguments = TypeVar("Arguments", bound=BaseModel)


class AnsweredCall(Struct, frozen=True):
    """A call of a tool, and its result."""

    call: contracts.Call
    result: str
    index: int
    """Of the call's message in the record, from 0."""

    def arguments(self, model: type[Arguments]) -> Arguments:
        """Return the call's arguments.

        Raises:
            InputError: they are not of the contract.
        """
        where = f"messages[{self.index}], arguments of {self.call.function.name}"
        return decode(model, self.call.function.arguments, where)


def calls_of(record: Record, tool: str | None = None) -> Iterator[AnsweredCall]:
    """Yield the calls that the next message answers, in order; of one tool, or of all."""
    for index, (message, answer) in enumerate(pairwise(record.messages)):
        if not isinstance(message, contracts.AssistantMessage) or not message.tool_calls:
            continue
        call = message.tool_calls[0]
        linked = isinstance(answer, contracts.ToolMessage) and answer.tool_call_id == call.id
        if linked and tool in (None, call.function.name):
            yield AnsweredCall(call, answer.content, index)


def operations_of(record: Record) -> list[contracts.Operation]:
    """Return the operations of the record's patch; none if it has no patch.

    Raises:
        InputError: the arguments of the call are not of the contract.
    """
    patches = [each.arguments(contracts.ApplyPatch) for each in calls_of(record, APPLY_PATCH)]
    return [op for patch in patches for op in patch.ops]


def files_of(record: Record) -> dict[str, str]:
    """Return the baseline's files that the record holds: text by path, in the record's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    calls = calls_of(record, READ_FILE)
    return {each.arguments(contracts.ReadFile).path: each.result for each in calls}


def schemas() -> dict[str, str]:
    """Return the text of each schema's file by its name, and the definitions of the tools."""
    texts = {_TOOLS_FILE: (FOLDER / _TOOLS_FILE).read_text(encoding="utf-8")}
    for model in _MODELS:
        name = re.sub("(?<!^)(?=[A-Z])", "-", model.__name__).lower()
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **model.model_json_schema(by_alias=True),
        }
        texts[f"{name}.json"] = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    return texts


def write_schemas(folder: Path = FOLDER) -> list[Path]:
    """Write the schemas into ``folder`` and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = schemas()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return [folder / name for name in texts]


if __name__ == "__main__":
    write_schemas()

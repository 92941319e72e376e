"""The three tools of a record: their definitions, which never change, and what their calls say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct
from pydantic import BaseModel

from debrief.recorder.contracts import (
    APPLY_PATCH,
    READ_FILE,
    RUN_COMMAND,
    ApplyPatch,
    AssistantMessage,
    Call,
    Operation,
    ReadFile,
    Record,
    ToolDefinition,
    ToolMessage,
)
from debrief.recorder.encoding import decode

PATCHED = '{"ok":true}'
"""Result of ``apply_patch``."""


def _text(description: str) -> dict[str, object]:
    return {"type": "string", "description": description}


_PATH = _text("Path of the file, relative to the repository's root.")
_MODE = {
    "type": "string",
    "enum": ["100644", "100755", "120000"],
    "description": "Git mode, where it matters: executable 100755, symbolic link 120000.",
}


def _tool(
    name: str, description: str, properties: dict[str, object], required: list[str]
) -> ToolDefinition:
    parameters = _closed(properties, required)
    return ToolDefinition(
        function={"name": name, "description": description, "parameters": parameters}
    )


def _closed(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _operation(kind: str, **more: object) -> dict[str, object]:
    properties = {"type": {"type": "string", "enum": [kind]}, "path": _PATH, **more}
    return _closed(properties, [name for name in properties if name != "mode"])


TOOLS: tuple[ToolDefinition, ...] = (
    _tool(READ_FILE, "Read the whole text of a file.", {"path": _PATH}, ["path"]),
    _tool(
        APPLY_PATCH,
        "Create, update and delete files, all at once.",
        {
            "ops": {
                "type": "array",
                "items": {
                    "anyOf": [
                        _operation(
                            "create_file",
                            diff=_text("The file's whole text."),
                            mode=_MODE,
                        ),
                        _operation(
                            "update_file",
                            diff=_text("Unified hunks, from the first @@ on."),
                            mode=_MODE,
                        ),
                        _operation("delete_file"),
                    ]
                },
            }
        },
        ["ops"],
    ),
    _tool(
        RUN_COMMAND,
        "Run a command of the package manager.",
        {
            "cmd": {"type": "string", "enum": ["pnpm"]},
            "args": {"type": "array", "items": {"type": "string"}},
            "cwd": _text("Folder to run it in, relative to the repository's root."),
        },
        ["cmd", "args", "cwd"],
    ),
)
"""The definitions in every record, in this order."""


Arguments = TypeVar("Arguments", bound=BaseModel)


class AnsweredCall(Struct, frozen=True):
    """A call of a tool, and its result."""

    call: Call
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
    for index, message in enumerate(record.messages[:-1]):
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            continue
        call, answer = message.tool_calls[0], record.messages[index + 1]
        linked = isinstance(answer, ToolMessage) and answer.tool_call_id == call.id
        if linked and tool in (None, call.function.name):
            yield AnsweredCall(call, answer.content, index)


def operations_of(record: Record) -> list[Operation]:
    """Return the operations of the record's patch; none if it has no patch.

    Raises:
        InputError: the arguments of the call are not of the contract.
    """
    patches = [each.arguments(ApplyPatch) for each in calls_of(record, APPLY_PATCH)]
    return [op for patch in patches for op in patch.ops]


def files_of(record: Record) -> dict[str, str]:
    """Return the baseline's files that the record holds: text by path, in the record's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    return {each.arguments(ReadFile).path: each.result for each in calls_of(record, READ_FILE)}

"""What the calls of a record say: operations, files read, commands run."""

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
    RunCommand,
    ToolMessage,
)
from debrief.recorder.encoding import decode

PATCHED = '{"ok":true}'
"""Result of ``apply_patch``."""

Arguments = TypeVar("Arguments", bound=BaseModel)


class Done(Struct, frozen=True):
    """A call and what it gave back."""

    call: Call
    result: str
    index: int
    """Of the call's message in the record, from 0."""

    def arguments(self, model: type[Arguments]) -> Arguments:
        """Return the call's arguments.

        Raises:
            InputError: they are not of the contract.
        """
        place = f"messages[{self.index}], arguments of {self.call.function.name}"
        return decode(model, self.call.function.arguments, place)


def calls_of(record: Record, tool: str | None = None) -> Iterator[Done]:
    """Yield the calls that the next message answers, in order; of one tool, or of all."""
    for index, message in enumerate(record.messages[:-1]):
        if not isinstance(message, AssistantMessage) or not message.tool_calls:
            continue
        call, answer = message.tool_calls[0], record.messages[index + 1]
        linked = isinstance(answer, ToolMessage) and answer.tool_call_id == call.id
        if linked and tool in (None, call.function.name):
            yield Done(call, answer.content, index)


def operations_of(record: Record) -> list[Operation]:
    """Return the operations of the record's patch; none if it has no patch.

    Raises:
        InputError: the arguments of the call are not of the contract.
    """
    return [op for done in calls_of(record, APPLY_PATCH) for op in done.arguments(ApplyPatch).ops]


def files_of(record: Record) -> dict[str, str]:
    """Return the baseline's files that the record holds: text by path, in the record's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    return {done.arguments(ReadFile).path: done.result for done in calls_of(record, READ_FILE)}


def commands_of(record: Record) -> list[tuple[RunCommand, str]]:
    """Return the commands that were run, each with its output, in order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    return [(done.arguments(RunCommand), done.result) for done in calls_of(record, RUN_COMMAND)]

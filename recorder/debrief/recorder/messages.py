"""What a record's messages tell: its calls, files and patches, what those change, what was run.

A record says each thing once. Which files changed and which commands ran is read here, in records
of every version; ``meta`` adds only what no message has, such as exit codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct
from pydantic import BaseModel

from debrief.git.scratch import EXECUTABLE, LINK, PLAIN, FileState
from debrief.recorder import contracts
from debrief.recorder.contracts import APPLY_PATCH, READ_FILE, FileChange, Record
from debrief.recorder.encoding import decode
from debrief.recorder.patching import apply_operations

Model = TypeVar("Model", bound=BaseModel)


class AnsweredCall(Struct, frozen=True):
    """A call of a tool, and its result."""

    call: contracts.Call
    result: str
    index: int
    """Of the call's message in the record, from 0."""

    def arguments(self, model: type[Model]) -> Model:
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


def patches_of(record: Record) -> list[list[contracts.Operation]]:
    """Return the operations of each of the record's patches.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    return [call.arguments(contracts.ApplyPatch).ops for call in calls_of(record, APPLY_PATCH)]


def operations_of(record: Record) -> list[contracts.Operation]:
    """Return the operations of all of the record's patches, one after the other; errors as of
    ``patches_of``."""
    return [op for patch in patches_of(record) for op in patch]


def files_of(record: Record) -> dict[str, str]:
    """Return the baseline's files that the record holds: text by path, in the record's order.

    Raises:
        InputError: the arguments of a call are not of the contract.
    """
    calls = calls_of(record, READ_FILE)
    return {call.arguments(contracts.ReadFile).path: call.result for call in calls}


def changes_of(record: Record) -> list[FileChange]:
    """Return the files that a record changes, by path; none that ends as it began.

    Lines are counted patch by patch, as those of a session are: one that is added and taken out
    again is in both numbers. Without contents, they are what ``meta`` says.

    Raises:
        InputError: its patches cannot be read or applied.
    """
    if record.meta.contents != "full":
        return list(record.meta.changes or ())
    patches, files = patches_of(record), files_of(record)
    modes = {**_first_modes(patches), **(record.meta.modes or {})}
    first = now = {path: FileState(modes.get(path, PLAIN), text) for path, text in files.items()}
    added: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for ops in patches:
        before, now = now, apply_operations(now, ops)
        for op in ops:
            if isinstance(op, contracts.CreateFile):
                added[op.path] += line_count(op.diff)
            elif isinstance(op, contracts.UpdateFile):
                added[op.path] += op.diff.count("\n+")
                removed[op.path] += op.diff.count("\n-")
            elif op.path in before:
                removed[op.path] += line_count(before[op.path].text)
    changed = sorted(path for path in {*first, *now} if first.get(path) != now.get(path))
    kinds: dict[str, contracts.Kind] = dict.fromkeys(changed, "update")
    kinds |= dict.fromkeys(set(changed) - first.keys(), "create")
    kinds |= dict.fromkeys(set(changed) - now.keys(), "delete")
    return [
        FileChange(path=path, kind=kinds[path], added=added[path], removed=removed[path])
        for path in changed
    ]


def _first_modes(patches: Iterable[Sequence[contracts.Operation]]) -> dict[str, str]:
    """Return, by path, the modes that files had at the baseline, where a patch changed them."""
    modes: dict[str, str] = {}
    gone: set[str] = set()
    for ops in patches:
        earlier = set(gone)
        deleted = {op.path for op in ops if isinstance(op, contracts.DeleteFile)}
        for op in ops:
            if isinstance(op, contracts.DeleteFile):
                gone.add(op.path)
            elif isinstance(op, contracts.UpdateFile) and op.mode and op.path not in gone:
                modes.setdefault(op.path, EXECUTABLE if op.mode == PLAIN else PLAIN)
            elif isinstance(op, contracts.CreateFile) and op.path in deleted - earlier:
                modes.setdefault(op.path, PLAIN if op.mode == LINK else LINK)
    return modes


def line_count(text: str) -> int:
    """Return how many lines a text has; a last one without a line end counts."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))

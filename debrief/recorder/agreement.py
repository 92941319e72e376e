"""Whether what a record's ``meta`` tells is what its messages say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from debrief.recorder.contracts import (
    OUTPUT_LIMIT,
    TRUNCATED,
    CreateFile,
    DeleteFile,
    FileChange,
    Kind,
    Meta,
    Operation,
    RunCommand,
)
from debrief.recorder.paths import shown
from debrief.recorder.tools import AnsweredCall

_LONGEST_PLACEHOLDER = 128
_CREDENTIALS = re.compile(r"https?://[^/]*@|[a-z+]+://[^/@]*:[^/]*@", re.IGNORECASE)


def line_count(text: str) -> int:
    """Return how many lines a text has; a last one without a line end counts."""
    return text.count("\n") + (bool(text) and not text.endswith("\n"))


def change_of(op: Operation, before: str = "") -> FileChange:
    """Return an operation in numbers.

    Args:
        op: the operation; an update's hunks have to add up.
        before: the text of a file that it deletes.
    """
    kind, added, removed = _numbers(op, before)
    return FileChange(path=op.path, kind=kind, added=added, removed=removed)


def _numbers(op: Operation, before: str) -> tuple[Kind, int, int]:
    if isinstance(op, CreateFile):
        return "create", line_count(op.diff), 0
    if isinstance(op, DeleteFile):
        return "delete", 0, line_count(before)
    return "update", op.diff.count("\n+"), op.diff.count("\n-")


def meta_problems(
    meta: Meta,
    files: Mapping[str, str],
    ops: Sequence[Operation],
    commands: Sequence[tuple[AnsweredCall, RunCommand]],
    patched: int | None,
) -> Iterator[str]:
    """Yield where ``meta`` disagrees with the messages or with itself.

    Args:
        meta: the record's.
        files: what was read, by path.
        ops: the operations of the patch.
        commands: the commands' calls and their arguments, in order.
        patched: index of the message that calls the patch; None without a patch.
    """
    if meta.contents == "none":
        if files or patched is not None or any(done.result for done, _ in commands):
            yield "meta.contents: none, but the messages hold contents or outputs"
    else:
        yield from _changes(meta, files, ops)
    yield from _commands(meta, commands, patched)
    both = {change.path for change in meta.changes} & {one.path for one in meta.skipped}
    for path in sorted(both):
        yield f"meta.skipped: {shown(path)} is among the changes too"
    if meta.stopped_at < meta.started_at:
        yield "meta.stoppedAt: before startedAt"
    if len(meta.base_ref) != len(meta.final_tree):
        yield "meta.finalTree: of another length than baseRef"
    if meta.redactions.unsure > meta.redactions.count:
        yield "meta.redactions: more are unsure than there are"
    if meta.repo_remote is not None and _CREDENTIALS.match(meta.repo_remote):
        yield "meta.repoRemote: holds a user name or a password"


def _changes(meta: Meta, files: Mapping[str, str], ops: Sequence[Operation]) -> Iterator[str]:
    stated = {(change.path, change.kind): change for change in meta.changes}
    if len(stated) != len(meta.changes):
        yield "meta.changes: a change is listed twice"
    for op in ops:
        kind, added, removed = _numbers(op, files.get(op.path, ""))
        change = stated.pop((op.path, kind), None)
        if change is None:
            yield f"meta.changes: {shown(op.path)} ({kind}) is missing"
        elif (change.added, change.removed) != (added, removed):
            numbers = f"adds {added} and removes {removed} lines"
            yield f"meta.changes: {shown(op.path)} ({kind}) {numbers}"
    for path, other in stated:
        yield f"meta.changes: {shown(path)} ({other}) is not in the patch"


def _commands(
    meta: Meta, commands: Sequence[tuple[AnsweredCall, RunCommand]], patched: int | None
) -> Iterator[str]:
    called = [(call.call.id, one.cmd, one.args, one.cwd) for call, one in commands]
    if called != [(one.call_id, one.cmd, one.args, one.cwd) for one in meta.commands]:
        yield "meta.commands: not the commands of the messages, in their order"
        return
    most = OUTPUT_LIMIT + len(TRUNCATED) + _LONGEST_PLACEHOLDER * meta.redactions.count
    for (call, _), summary in zip(commands, meta.commands, strict=True):
        place = f"messages[{call.index + 1}]"
        if len(call.result) > most:
            yield f"{place}: an output of over {OUTPUT_LIMIT:,} characters"
        if summary.truncated and meta.contents == "full" and not call.result.endswith(TRUNCATED):
            yield f"{place}: a truncated output without the marker"
        if patched is not None and summary.on_final_tree != (call.index > patched):
            yield f"messages[{call.index}]: on the wrong side of the patch for onFinalTree"

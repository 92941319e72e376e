"""Operations of a record, applied to the files that they were made from, or refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from debrief.errors import InputError, shown
from debrief.git.hunks import HunkError, apply_hunks
from debrief.git.scratch import LINK, PLAIN, FileState
from debrief.recorder.contracts import CreateFile, DeleteFile, Operation, UpdateFile
from debrief.recorder.paths import path_problem


def apply_operations(
    before: Mapping[str, FileState], ops: Iterable[Operation]
) -> dict[str, FileState]:
    """Return the files as they are after the operations, in the operations' order.

    Args:
        before: the files by path, at least those that the operations update or delete.
        ops: what is done, one after the other.

    Raises:
        InputError: an operation cannot be applied; names its path. Nothing is half applied.
    """
    files = dict(before)
    for op in ops:
        if problem := path_problem(op.path):
            raise InputError(shown(op.path), problem)
        if isinstance(op, CreateFile):
            if op.path in files:
                raise InputError(shown(op.path), "is created, but is there already")
            files[op.path] = FileState(op.mode or PLAIN, op.diff)
        elif op.path not in files:
            done = "deleted" if isinstance(op, DeleteFile) else "updated"
            raise InputError(shown(op.path), f"is {done}, but is not there")
        elif isinstance(op, UpdateFile):
            files[op.path] = _updated(files[op.path], op)
        else:
            del files[op.path]
    check_folders(files)
    return files


def _updated(state: FileState, op: UpdateFile) -> FileState:
    if op.mode is not None and (op.mode == LINK) != (state.mode == LINK):
        raise InputError(shown(op.path), "an update turns a file into a link or back")
    if not op.diff:
        if op.mode is None:
            raise InputError(shown(op.path), "an update changes neither text nor mode")
        return FileState(op.mode, state.text)
    try:
        text = apply_hunks(state.text, op.diff)
    except HunkError as error:
        raise InputError(shown(op.path), str(error)) from error
    return FileState(op.mode or state.mode, text)


def check_folders(files: Iterable[str]) -> None:
    """Refuse files inside of files: sorted name by name, those follow right behind.

    Raises:
        InputError: names the first of them.
    """
    for before, after in pairwise(sorted(files, key=lambda path: path.replace("/", "\0"))):
        if after.startswith(f"{before}/"):
            raise InputError(shown(after), f"{shown(before)} is not a folder")

"""The round trip: a record's operations, applied to its baseline, give back its final tree."""

from __future__ import annotations

from pathlib import Path

from debrief.errors import InputError
from debrief.recorder.applier import FileState, apply_operations
from debrief.recorder.calls import files_of, operations_of
from debrief.recorder.contracts import CreateFile, DeleteFile, Record
from debrief.recorder.objects import FOLDER, SUBMODULE, Entry, Objects
from debrief.recorder.scratch import scratch_of
from debrief.redaction import Redactor


def verify(
    root: Path, record: Record, redactor: Redactor | None = None, scratch: Path | None = None
) -> list[str]:
    """Return why a record does not rebuild its final tree, in words; empty when it does.

    The baseline is read from the repository, the operations from the record, and the tree that
    they make is put together and digested anew: only the same bytes give the same id. Nothing is
    written outside of a temporary folder.

    Args:
        root: anywhere in a working tree of the repository.
        record: with contents.
        redactor: of the machine that made the record; replaces the baseline's secrets as it did.
        scratch: the folder in which temporary files are made.
    """
    try:
        with scratch_of(root, scratch) as opened, opened.objects() as objects:
            return round_trip(objects, record, redactor)
    except InputError as error:
        return [str(error)]


def round_trip(objects: Objects, record: Record, redactor: Redactor | None = None) -> list[str]:
    """Return what ``verify`` does, of a repository that is open already."""
    try:
        return _problems(objects, record, redactor)
    except InputError as error:
        return [str(error)]


def _problems(objects: Objects, record: Record, redactor: Redactor | None) -> list[str]:
    meta = record.meta
    if meta.contents != "full":
        return ["a record without contents has no operations to verify"]
    base = objects.tree_of(meta.base_ref)
    operations = operations_of(record)
    told = files_of(record)
    problems: list[str] = []
    before: dict[str, FileState] = {}
    gone = {op.path for op in operations if isinstance(op, DeleteFile)}
    for path in sorted({op.path for op in operations}):
        entry = objects.find(base, path.encode())
        if entry is None or entry.mode == FOLDER:
            continue
        if entry.mode == SUBMODULE:
            problems.append(f"{path!r}: another repository at the baseline")
            continue
        text = _text(objects, path, entry, redactor)
        if told.get(path) != text:
            problems.append(f"{path!r}: the record has another text of it than the baseline")
        before[path] = FileState(_mode(entry.mode), text)
    created = {op.path for op in operations if isinstance(op, CreateFile)}
    problems += [
        f"{path!r}: created over a file" for path in sorted(created & before.keys() - gone)
    ]
    if problems:
        return problems
    after = apply_operations(before, operations)
    entries = {
        path.encode(): _entry(objects, after.get(path)) for path in {op.path for op in operations}
    }
    tree = objects.replace(base, entries)
    if tree != meta.final_tree:
        return [f"the operations make the tree {tree} instead of {meta.final_tree}"]
    return []


def _text(objects: Objects, path: str, entry: Entry, redactor: Redactor | None) -> str:
    try:
        text = objects.read(entry.id).decode()
    except UnicodeDecodeError as error:
        raise InputError(repr(path), "is not UTF-8 at the baseline") from error
    return redactor.redact(text).text if redactor else text


def _entry(objects: Objects, state: FileState | None) -> Entry | None:
    return Entry(state.mode, objects.blob_id(state.text.encode())) if state else None


def _mode(mode: str) -> str:
    """Return the mode that git writes today; very old trees have others of plain files."""
    return mode if mode in ("100644", "100755", "120000") else "100644"

"""The round trip: a record's operations, applied to its baseline, give back its final tree.

It is verified beside a repository, without a trace in it; and a record can be replayed in a
checkout of its baseline.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path

from debrief.errors import InputError, shown
from debrief.git import find_commit
from debrief.git.scratch import PLAIN, SUBMODULE, Entry, FileState, Scratch, scratch_of
from debrief.recorder.checks import problems_of
from debrief.recorder.comparison import check_clean, snapshot_tree
from debrief.recorder.contracts import MAX_STRING, Record
from debrief.recorder.messages import changes_of, files_of, patches_of
from debrief.recorder.patching import apply_operations, check_folders
from debrief.recorder.repository import head_commit, worktree_of
from debrief.redaction import Redactor


def verify(folder: Path, record: Record, redactor: Redactor | None = None) -> list[str] | None:
    """Return why a record does not rebuild its final tree, in words; empty when it does.

    The baseline is read from the repository, the operations from the record, and the tree that
    they make is put together anew: only the same bytes give the same id. Nothing is written
    outside of a temporary folder.

    Args:
        folder: anywhere in a working tree of the repository, perhaps.
        record: with contents.
        redactor: of the machine that made the record; replaces the baseline's secrets as it did.

    Returns:
        None where the baseline is not at hand.
    """
    try:
        top = worktree_of(folder)
    except InputError:
        return None
    if find_commit(top, record.meta.base_ref) is None:
        return None
    try:
        with scratch_of(top) as opened:
            return round_trip(opened, record, redactor)
    except InputError as error:
        return [str(error)]


def round_trip(
    scratch: Scratch,
    record: Record,
    redactor: Redactor | None = None,
    steps: Sequence[str] = (),
) -> list[str]:
    """Return what ``verify`` does, of a repository that is open already.

    Args:
        scratch: beside the repository.
        record: as of ``verify``.
        redactor: the same. Without one, a record in which secrets were replaced does not fit its
            baseline.
        steps: the tree that each patch has to make, where the recorder still knows it.

    Raises:
        InputError: the operations cannot be read or applied.
    """
    meta = record.meta
    if not meta.redactions.count:
        redactor = None
    if meta.contents != "full":
        return ["a record without contents has no operations to verify"]
    patches, texts = patches_of(record), files_of(record)
    paths = {op.path.encode(): op.path for patch in patches for op in patch}
    baseline = scratch.entries(meta.base_ref)
    entries = {paths[path]: entry for path, entry in baseline.items() if path in paths}
    blobs = scratch.read_blobs(
        (entry.id for entry in entries.values() if entry.mode != SUBMODULE), MAX_STRING
    )
    problems: list[str] = []
    before: dict[str, FileState] = {}
    for path, entry in sorted(entries.items()):
        if entry.mode == SUBMODULE:
            problems.append(f"{path!r}: another repository at the baseline")
            continue
        try:
            text = (blobs[entry.id] or b"").decode()
        except UnicodeDecodeError as error:
            raise InputError(repr(path), "is not UTF-8 at the baseline") from error
        text = redactor.redact(text).text if redactor else text
        if texts.get(path) != text:
            problems.append(f"{path!r}: the record has another text of it than the baseline")
        before[path] = FileState(entry.mode, text)
    deleted = {op.path for patch in patches for op in patch if op.type == "delete_file"}
    modes = {path: file.mode for path, file in before.items() if file.mode != PLAIN}
    if meta.version > 2 and (meta.modes or {}) != {
        path: mode for path, mode in modes.items() if path in deleted
    }:
        problems.append("meta.modes: not those of the baseline")
    if problems:
        return problems
    others = {os.fsdecode(path) for path in baseline} - before.keys()
    tree = _tree_with(scratch, meta.base_ref, before, before.keys())
    for patch, due in zip_longest(patches, steps):
        before = apply_operations(before, patch)
        check_folders(others | before.keys())
        tree = _tree_with(scratch, tree, before, {op.path for op in patch})
        if due and tree != due:
            return [f"the operations make the tree {tree} instead of {due}"]
    if meta.final_tree not in (None, tree):
        return [f"the operations make the tree {tree} instead of {meta.final_tree}"]
    return []


def _tree_with(
    scratch: Scratch, tree: str, files: Mapping[str, FileState], paths: Iterable[str]
) -> str:
    """Return a tree in which some paths are as ``files`` has them."""
    states = {path: files.get(path) for path in paths}
    ids = iter(scratch.write_blobs([state.text for state in states.values() if state]))
    entries = {
        path.encode(): Entry(state.mode, next(ids)) if state else None
        for path, state in states.items()
    }
    return scratch.tree_with(tree, entries)


def replay(record: Record, folder: Path) -> list[str]:
    """Apply a record to a clean checkout of its baseline; return the paths that changed.

    Raises:
        InputError: the record contradicts itself, the folder is another one than it was made in,
            or something is changed in it already; nothing was written. Or what came out is not
            the record's final tree.
    """
    meta = record.meta
    if problems := problems_of(record):
        raise InputError("the record", "; ".join(problems))
    if meta.contents != "full":
        raise InputError("the record", "was made without contents: there is nothing to apply")
    if meta.final_tree is None:
        reason = "does not tell its final tree (meta.finalTree), so the result cannot be checked"
        raise InputError("the record", reason, "Apply it by hand.")
    try:
        top = worktree_of(folder)
    except InputError as error:
        move = "Name the top of a checkout: --to FOLDER"
        raise InputError(error.culprit, error.reason, move) from error
    if folder.resolve() != top:
        raise InputError(str(folder), "is not the top of its worktree", f"As: --to {top}")
    if head_commit(top) != meta.base_ref:
        raise InputError(
            str(top),
            f"is not at the record's baseline {meta.base_ref}",
            f"Make a checkout of it: git worktree add --detach FOLDER {meta.base_ref}",
        )
    check_clean(top)
    with scratch_of(top) as scratch:
        scratch.add_all()
        if problems := round_trip(scratch, record):
            if meta.redactions.count:
                problems = ["secrets are replaced in its texts of the baseline", *problems]
            raise InputError("the record", "; ".join(problems), "Apply it by hand.")
        changed = _check_out(scratch, record, meta.final_tree)
    created = [change.path for change in changes_of(record) if change.kind == "create"]
    tree = snapshot_tree(top, forced=created)
    if tree != meta.final_tree:
        raise InputError(
            str(top),
            f"became the tree {tree} and not {meta.final_tree}: files are converted on their "
            "way into this repository",
            "See what differs with: git status",
        )
    return changed


def _check_out(scratch: Scratch, record: Record, final_tree: str) -> list[str]:
    """Turn the baseline's files into those of the final tree, all of them or none."""
    top, changes = scratch.repository.top, changes_of(record)
    deleted = {change.path for change in changes if change.kind == "delete"}
    created = {change.path for change in changes if change.kind == "create"}
    for path in sorted(created):
        target = top / path
        for each in (target, *target.rglob("*"), *target.parents[: path.count("/")]):
            is_file = each.is_symlink() or (each.exists() and not each.is_dir())
            name = each.relative_to(top).as_posix()
            if is_file and name not in deleted:
                raise InputError(shown(name), f"is in the way of {shown(path)}", "Move it away.")
    try:
        scratch.git("read-tree", "-u", "-m", record.meta.base_ref, final_tree)
    except InputError:
        for path in created:
            with suppress(OSError):
                (top / path).unlink()
        scratch.git("read-tree", "-u", "--reset", record.meta.base_ref)
        raise
    return [change.path for change in changes]

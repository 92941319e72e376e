"""A record, done again: in a checkout of its baseline, or beside a repository without a trace."""

from __future__ import annotations

from pathlib import Path

from debrief.errors import InputError
from debrief.recorder.applier import apply_to_folder
from debrief.recorder.baseline import has_commit, worktree_of
from debrief.recorder.calls import operations_of
from debrief.recorder.changes import is_clean, snapshot_tree
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import Record
from debrief.recorder.repository import head_commit
from debrief.recorder.session import NotCleanError
from debrief.recorder.verification import verify
from debrief.redaction import Redactor


def replay(record: Record, folder: Path) -> list[str]:
    """Apply a record to a clean checkout of its baseline; return the paths that changed.

    Raises:
        InputError: the record contradicts itself, the folder is another one than it was made in,
            or something is changed in it already; nothing was written. Or what came out is not
            the tree that the record tells of.
    """
    meta = record.meta
    if problems := problems_of(record):
        raise InputError("the record", "; ".join(problems))
    if meta.contents != "full":
        raise InputError("the record", "was made without contents: there is nothing to apply")
    top = worktree_of(folder)
    if folder.resolve() != top:
        raise InputError(str(folder), "is not the top of its worktree", f"As: --to {top}")
    if head_commit(top) != meta.base_ref:
        raise InputError(
            str(top),
            f"is not at the record's baseline {meta.base_ref}",
            f"Make a checkout of it: git worktree add --detach FOLDER {meta.base_ref}",
        )
    if paths := is_clean(top):
        raise NotCleanError(str(top), paths)
    changed = apply_to_folder(top, operations_of(record))
    tree = snapshot_tree(top)
    if tree != meta.final_tree:
        raise InputError(
            str(top),
            f"became the tree {tree} and not {meta.final_tree}: files are converted or ignored "
            "on their way into this repository",
            "See what differs with: git status --ignored",
        )
    return changed


def rebuilds(record: Record, folder: Path, redactor: Redactor) -> list[str] | None:
    """Return why a record does not rebuild its tree; None where its baseline is not at hand.

    Args:
        record: with contents.
        folder: of the repository, perhaps.
        redactor: of the machine that made the record.
    """
    try:
        top = worktree_of(folder)
    except InputError:
        return None
    if not has_commit(top, record.meta.base_ref):
        return None
    masks = redactor if record.meta.redactions.count else None
    return verify(top, record, masks)

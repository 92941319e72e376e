"""A record, done again: in a checkout of its baseline, or beside a repository without a trace."""

from __future__ import annotations

from pathlib import Path

from debrief.errors import InputError
from debrief.recorder.applier import apply_to_folder
from debrief.recorder.baseline import has_commit, worktree_of
from debrief.recorder.calls import files_of, operations_of
from debrief.recorder.changes import is_clean, snapshot_tree
from debrief.recorder.checks import problems_of
from debrief.recorder.contracts import Record
from debrief.recorder.paths import shown
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
    if paths := is_clean(top):
        raise NotCleanError(str(top), paths)
    changed = apply_to_folder(top, operations_of(record), _with_crlf(top, record))
    tree = snapshot_tree(top)
    if tree != meta.final_tree:
        raise InputError(
            str(top),
            f"became the tree {tree} and not {meta.final_tree}: files are converted or ignored "
            "on their way into this repository",
            "See what differs with: git status --ignored",
        )
    return changed


def _with_crlf(top: Path, record: Record) -> set[str]:
    """Return the files of the record whose line ends are CRLF in this checkout alone.

    Raises:
        InputError: a file is here in yet another form than in the commit.
    """
    found = set()
    for path, text in files_of(record).items():
        file = top / path
        if file.is_symlink() or not file.is_file():
            continue
        data, told = file.read_bytes(), text.encode()
        if data == told:
            continue
        if data.replace(b"\r\n", b"\n") != told:
            raise _other_form(path, record)
        found.add(path)
    return found


def _other_form(path: str, record: Record) -> InputError:
    if record.meta.redactions.count:
        return InputError(
            shown(path),
            "differs from what the record tells of the baseline, in which secrets are replaced",
            "Apply it by hand; debrief record check tells whether it rebuilds its tree.",
        )
    return InputError(
        shown(path),
        "is converted on its way out of this repository, by a filter or to another encoding",
        "See git check-attr --all FILE, and apply it by hand.",
    )


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

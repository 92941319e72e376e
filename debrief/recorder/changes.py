"""What changed since a commit, exactly, without a trace in the repository.

Everything is in blob space: what git would commit, not what the checkout's line ends are. What a
record cannot hold is left at the baseline and named with its reason, so that nothing is missed
silently. Files that git was told to take for unchanged (``assume-unchanged``), and files that git
ignores, are not seen, as git does not see them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct, structs

from debrief.errors import InputError, readable, shown
from debrief.recorder.comparison import (
    ChangedFile,
    Comparison,
    IgnoreRules,
    SkippedChange,
    Version,
    compare,
)
from debrief.recorder.contracts import MANY_FILES
from debrief.recorder.encoding import MAX_STRING
from debrief.recorder.repository import head_commit
from debrief.recorder.scratch import Entry, Scratch, scratch_of

_MOST_NAMED, _MOST_PATHS = 5, 20
_EXACT = (
    *("-p", "--text", "--diff-filter=M", "--no-renames", "--no-ext-diff", "--no-textconv"),
    *("--no-color", "--full-index", "-U3", "--inter-hunk-context=0", "--diff-algorithm=myers"),
)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)
_INDEX = re.compile(rb"^index [0-9a-f]+\.\.[0-9a-f]+", re.MULTILINE)


class WorktreeChanges(Struct, frozen=True, kw_only=True):
    """All that changed between a commit and a working tree."""

    base: str
    """The commit."""
    tree: str
    """Id of the whole working tree's tree, as ``snapshot_tree`` gives it."""
    final_tree: str
    """Id of the tree that ``files`` make of the baseline's: what is skipped is as it was."""
    files: tuple[ChangedFile, ...]
    """By path."""
    skipped: tuple[tuple[str, str], ...]
    """Path and reason, sorted; a folder that is ignored is one of them."""
    warnings: tuple[str, ...]


def snapshot_tree(root: Path, scratch: Path | None = None) -> str:
    """Return the id of the tree that the working tree is: two are the same if their files are.

    Args:
        root: anywhere in the working tree.
        scratch: the folder in which temporary files are made; the machine's usual one by default.

    Raises:
        InputError: no repository, or git cannot read the working tree.
    """
    with scratch_of(root, scratch) as opened:
        opened.add_all()
        return opened.write_tree()


def uncommitted_paths(
    root: Path, ignore: Sequence[str] = (), scratch: Path | None = None
) -> list[str]:
    """Return the paths that are not as in the last commit, new files included; none if clean.

    A file whose bytes are the commit's is clean, whatever its line ends should be; so is one of
    which only a program that is not run could decide.

    Args:
        root: anywhere in the working tree.
        ignore: a person's own patterns of what no record holds.
        scratch: as of ``snapshot_tree``.

    Raises:
        InputError: no repository or no commit, or git cannot read the working tree.
    """
    with scratch_of(root, scratch) as opened:
        opened.add_all()
        comparison = compare(opened, head_commit(root), IgnoreRules(ignore))
    skipped = (item.shown for item in comparison.skipped if not item.is_unsure)
    return sorted([*(file.path for file in comparison.files), *skipped])


def check_clean(root: Path, ignore: Sequence[str] = (), scratch: Path | None = None) -> None:
    """Refuse a working tree with ``uncommitted_paths``, which see for the arguments.

    Raises:
        InputError: something is changed; names the paths.
    """
    paths = uncommitted_paths(root, ignore, scratch)
    if not paths:
        return
    names = "".join(f"\n  {readable(path)}" for path in paths[:_MOST_PATHS])
    more = f"\n  and {len(paths) - _MOST_PATHS:,} more" if len(paths) > _MOST_PATHS else ""
    differ = "1 path differs" if len(paths) == 1 else f"{len(paths):,} paths differ"
    raise InputError(
        str(root),
        f"is not clean: {differ} from the last commit{names}{more}\n"
        "A record holds the changes from a commit on",
        "Commit them, stash them (git stash -u), or have git ignore them.",
    ).known_as("not-clean", paths=paths)


def find_changes(scratch: Scratch, base: str, ignore: Sequence[str] = ()) -> WorktreeChanges:
    """Return what changed between a commit and the working tree.

    Args:
        scratch: the open repository.
        base: id of a commit; HEAD may have moved on since.
        ignore: a person's own patterns of what to leave out, in the syntax of gitignore.

    Raises:
        InputError: no such commit, or git cannot read the working tree.
    """
    scratch.add_all()
    comparison = compare(scratch, base, IgnoreRules(ignore))
    files, conflicting = _without_conflicts(comparison)
    final_tree = scratch.tree_with(base, entries_of(files))
    files = with_hunks(scratch, files, base, final_tree)
    too_long = [file.path for file in files if len(file.hunks) > MAX_STRING]
    if too_long:
        files = [file for file in files if file.path not in too_long]
        final_tree = scratch.tree_with(base, entries_of(files))
    reason = f"its change is over {MAX_STRING:,} characters"
    skipped = [(item.shown, item.reason) for item in (*comparison.skipped, *conflicting)]
    skipped += [(path, reason) for path in too_long]
    skipped += [
        (path, "ignored" if count == 1 else f"ignored ({count:,} changed files)")
        for path, count in comparison.ignored.items()
    ]
    return WorktreeChanges(
        base=base,
        tree=scratch.write_tree(),
        final_tree=final_tree,
        files=tuple(files),
        skipped=tuple(sorted(skipped)),
        warnings=_warnings(files, len(skipped)),
    )


def entries_of(files: Iterable[ChangedFile], *, before: bool = False) -> dict[bytes, Entry | None]:
    """Return what one side of the files puts into a tree: the later one by default."""
    sides = ((file.path, file.before if before else file.after) for file in files)
    return {path.encode(): Entry(side.mode, side.id) if side else None for path, side in sides}


def with_hunks(
    scratch: Scratch, files: Sequence[ChangedFile], before: str, after: str
) -> list[ChangedFile]:
    """Return the files with their hunks. Git takes every file for text, whatever attributes say.

    Args:
        scratch: the open repository.
        files: by path.
        before: the tree or commit of their one side.
        after: the tree of the other, in which nothing but ``files`` differs.

    Raises:
        InputError: git fails, or its differences are not those of ``files``.
    """
    changed = [file for file in files if file.is_update and _id(file.before) != _id(file.after)]
    patch = scratch.git("diff-tree", "-r", *_EXACT, before, after)
    starts = [match.start() for match in _SECTION.finditer(patch)]
    parts = (patch[i:j] for i, j in pairwise([*starts, len(patch)]))
    # A file of which only the mode changed has a section without hunks.
    sections = [part for part in parts if b"\n@@ -" in part]
    if len(sections) != len(changed):
        raise InputError(str(scratch.repository.top), "git shows other changes than it listed")
    hunks = {}
    for file, section in zip(changed, sections, strict=True):
        ids = _INDEX.search(section)
        if not ids or ids[0].decode() != f"index {_id(file.before)}..{_id(file.after)}":
            raise InputError(repr(file.path), "git shows another change of it than it listed")
        hunks[file.path] = section[section.index(b"\n@@ -") + 1 :].decode()
    return [structs.replace(file, hunks=hunks.get(file.path, "")) for file in files]


def _id(version: Version | None) -> str:
    return version.id if version else ""


def _without_conflicts(
    comparison: Comparison,
) -> tuple[list[ChangedFile], list[SkippedChange]]:
    """Skip created files that cannot be beside what is skipped, and so stays as it was."""
    kept = {item.path for item in comparison.skipped if item.in_baseline}
    folders = {above for path in kept for above in _above(path)}
    fitting: list[ChangedFile] = []
    conflicting: list[SkippedChange] = []
    for file in comparison.files:
        path = file.path.encode()
        if file.before is None and (path in folders or kept.intersection(_above(path))):
            reason = "it would be in the place of another one that is skipped"
            conflicting.append(SkippedChange(path, reason))
        else:
            fitting.append(file)
    return fitting, conflicting


def _above(path: bytes) -> list[bytes]:
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def _warnings(files: Sequence[ChangedFile], skipped: int) -> tuple[str, ...]:
    warnings = []
    if len(files) > MANY_FILES:
        warnings.append(f"{len(files):,} files changed: over {MANY_FILES} are hard to learn from")
    # A file that got the lines with which git marks what it could not merge.
    conflicts = (one for one in files if _has_markers(one.after) and not _has_markers(one.before))
    if marked := sorted(shown(file.path) for file in conflicts):
        more = f" and {len(marked) - _MOST_NAMED:,} more" if len(marked) > _MOST_NAMED else ""
        warnings.append(f"conflict markers are left in {', '.join(marked[:_MOST_NAMED])}{more}")
    if skipped:
        paths = "1 changed path is" if skipped == 1 else f"{skipped:,} changed paths are"
        warnings.append(f"{paths} not in the record; see skipped")
    return tuple(warnings)


def _has_markers(version: Version | None) -> bool:
    text, start = f"\n{version.text if version else ''}", 0
    for marker in ("<<<<<<< ", "=======", ">>>>>>> "):
        start = text.find(f"\n{marker}", start) + 1
        if not start:
            return False
    return True

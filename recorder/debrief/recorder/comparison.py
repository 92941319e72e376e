"""The working tree compared with a commit: what differs, what a record can hold, what is clean."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from pathspec import GitIgnoreSpec

from debrief.errors import InputError, readable
from debrief.git import find_commit
from debrief.git.scratch import (
    LFS,
    LINK,
    SUBMODULE,
    Entry,
    FileState,
    Scratch,
    lfs_digest,
    scratch_of,
)
from debrief.recorder.contracts import MAX_STRING, FileChange, Kind
from debrief.recorder.messages import line_count
from debrief.recorder.paths import path_problem
from debrief.recorder.repository import head_commit

GENERATED = (
    *(".agent-dataset/", ".debrief/", "node_modules/", ".pnpm-store/", ".next/", ".nuxt/"),
    *(".turbo/", ".cache/", ".parcel-cache/", ".svelte-kit/", "__pycache__/", ".pytest_cache/"),
    *(".mypy_cache/", ".venv/", "dist/", "build/", "out/", "target/", "coverage/"),
    *("*.tsbuildinfo", ".DS_Store"),
)
"""What tools make, in the syntax of gitignore. As in git, files that the baseline has are not
ignored by it."""

_BACKEND: Literal["simple"] = "simple"
"""The engines for many paths take longer to start than matching a session's paths takes."""
_MOST_PATHS = 20
_ANOTHER = "a submodule, or a repository of its own"


class IgnoreRules:
    """Which changes a record leaves out: those that tools make, and those that a person names.

    Args:
        patterns: a person's own, in the syntax of gitignore. They hold for files of the baseline
            too, and come after ``GENERATED``, so that ``!dist/`` takes ``dist/`` in again.

    Raises:
        InputError: a pattern cannot be read.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        try:
            own = GitIgnoreSpec.from_lines(patterns, backend=_BACKEND)
            every = GitIgnoreSpec.from_lines([*GENERATED, *patterns], backend=_BACKEND)
        except ValueError as error:
            raise InputError("ignore patterns", str(error), "Use gitignore's syntax.") from error
        self._own, self._all = cache(own.match_file), cache(every.match_file)

    def match(self, path: bytes, *, in_baseline: bool) -> bytes:
        """Return what is ignored: the topmost folder that ``path`` lies in, itself, or nothing.

        A folder ends in a slash.
        """
        is_ignored = self._own if in_baseline else self._all
        folders = (path[: slash.end()] for slash in re.finditer(b"/", path))
        return next((each for each in (*folders, path) if is_ignored(os.fsdecode(each))), b"")


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A changed file, its two sides, and the hunks between them."""

    path: str
    before: FileState | None
    """None where it was created."""
    after: FileState | None
    """None where it was deleted."""
    hunks: str = ""
    """From the first ``@@``, exact; empty unless the text of a file that stays was changed."""

    @property
    def is_update(self) -> bool:
        """It is there on both sides, and did not go from a file to a link or back: that is a
        deletion and a creation."""
        if not (self.before and self.after):
            return False
        return (self.before.mode == LINK) == (self.after.mode == LINK)


def change_of(file: ChangedFile, added: int, removed: int) -> FileChange:
    """Return a changed file in numbers.

    Args:
        file: without hunks, perhaps.
        added: lines, if it is updated.
        removed: the same.
    """
    before, after = file.before, file.after
    if not file.is_update:
        added, removed = (line_count(side.text) if side else 0 for side in (after, before))
    kind: Kind = "create" if before is None else "delete" if after is None else "update"
    return FileChange(path=file.path, kind=kind, added=added, removed=removed)


class SkippedChange(Struct, frozen=True):
    """A change that a record does not hold: the path stays as it is in the baseline."""

    path: bytes
    reason: str
    in_baseline: bool = True
    is_unsure: bool = False
    """A session can begin with it: the path may be unchanged, as a filter that is not run decides,
    or git was told not to look at it."""

    @property
    def shown(self) -> str:
        """The path as text, whatever its bytes are."""
        return self.path.decode("utf-8", "backslashreplace")


class Comparison(NamedTuple):
    """All differences: what a record can hold, what it cannot, and what it ignores."""

    files: tuple[ChangedFile, ...]
    """By path; without hunks."""
    skipped: tuple[SkippedChange, ...]
    ignored: Mapping[str, int]
    """Ignored paths and folders, each with how many changed files it has."""


class _Difference(Struct, frozen=True):
    path: bytes
    before: Entry | None
    after: Entry | None

    @property
    def modes(self) -> list[str]:
        return [entry.mode for entry in (self.before, self.after) if entry]

    @property
    def stays(self) -> bool:
        """A plain file on both sides."""
        return len(self.modes) == 2 and LINK not in self.modes


def compare(scratch: Scratch, base: str, rules: IgnoreRules) -> Comparison:
    """Compare a commit or tree with the working tree, which ``scratch`` has added.

    Raises:
        InputError: git cannot compare them, or an object of them is not in the repository.
    """
    files: list[ChangedFile] = []
    skipped: list[SkippedChange] = []
    ignored: Counter[str] = Counter()
    differences: list[_Difference] = []
    overlooked = scratch.overlooked()
    found = [item for item in _differences(scratch, base) if item.path not in overlooked]
    for item in found:
        if match := rules.match(item.path, in_baseline=item.before is not None):
            ignored[match.decode("utf-8", "backslashreplace")] += 1
        else:
            differences.append(item)
    for path, mark in overlooked.items():
        if match := rules.match(path, in_baseline=True):
            ignored[match.decode("utf-8", "backslashreplace")] += 1
        else:
            reason = f"git was told not to look at its changes ({mark})"
            skipped.append(SkippedChange(path, reason, is_unsure=True))
    filters = scratch.filters_of([item.path for item in differences])
    entries = (entry for item in differences for entry in (item.before, item.after) if entry)
    ids = [entry.id for entry in entries if entry.mode != SUBMODULE]
    blobs = scratch.read_blobs(ids, MAX_STRING) if ids else {}
    for item in differences:
        driver = filters.get(item.path, "")
        change = _change(scratch, item, driver, blobs)
        if isinstance(change, ChangedFile):
            files.append(change)
        elif change is not None:
            is_unsure = driver not in ("", LFS) and len(item.modes) == 2
            skipped.append(SkippedChange(item.path, change, item.before is not None, is_unsure))
    skipped += _unreadable(scratch, rules)
    skipped += _moved_submodules(scratch, base, {change.path for change in skipped})
    return Comparison(tuple(files), tuple(skipped), ignored)


def _differences(scratch: Scratch, base: str) -> Iterator[_Difference]:
    """Yield what differs between a tree and our index, in the order of the paths' bytes."""
    options = ("--cached", "--raw", "-z", "--no-renames", "--full-index")
    fields = scratch.git("diff-index", *options, base).split(b"\0")[:-1]
    for head, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, _ = head[1:].decode().split(" ")
        before, after = (
            Entry.of(mode, object_id) if int(mode) else None
            for mode, object_id in ((old_mode, old_id), (new_mode, new_id))
        )
        yield _Difference(path, before, after)


def _change(
    scratch: Scratch, item: _Difference, driver: str, blobs: Mapping[str, bytes | None]
) -> ChangedFile | str | None:
    """Return the changed file, or why a record cannot hold it, or None where nothing differs."""
    if SUBMODULE in item.modes:
        return _ANOTHER
    if problem := path_problem(item.path.decode("utf-8", "surrogateescape")):
        return problem
    if driver == LFS:
        kept = lfs_digest(blobs[item.before.id] or b"") if item.before and item.stays else ""
        return None if kept and scratch.digest_of(item.path) == kept else "kept in Git LFS"
    if driver:
        return f"its filter {driver!r} is not run"
    try:
        before, after = (_state(entry, blobs) for entry in (item.before, item.after))
    except ValueError as error:
        return str(error)
    if item.stays and before and after:
        digest = hashlib.sha256(before.text.encode()).hexdigest()
        if digest == scratch.digest_of(item.path):
            after = FileState(after.mode, before.text, before.id)
    if before == after:
        return None
    return ChangedFile(path=item.path.decode(), before=before, after=after)


def _state(entry: Entry | None, blobs: Mapping[str, bytes | None]) -> FileState | None:
    """Return one side, None where there is none.

    Raises:
        ValueError: no record can hold it; says why.
    """
    if entry is None:
        return None
    content = blobs[entry.id]
    if content is None:
        raise ValueError(f"over {MAX_STRING:,} bytes")
    if b"\0" in content:
        raise ValueError("binary: it has NUL bytes")
    try:
        return FileState(entry.mode, content.decode(), entry.id)
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None


def _unreadable(scratch: Scratch, rules: IgnoreRules) -> Iterator[SkippedChange]:
    """Yield what git could not add, and so could not compare."""
    for name in scratch.unreadable:
        path = name.rstrip(b"/")
        if not rules.match(path, in_baseline=False):
            yield SkippedChange(path, _ANOTHER if name.endswith(b"/") else "cannot be read")


def _moved_submodules(scratch: Scratch, base: str, skipped: set[bytes]) -> Iterator[SkippedChange]:
    """Yield submodules whose own HEAD is not where the baseline has it."""
    submodules = [path for path in scratch.submodules() if path not in skipped]
    entries = scratch.entries(base) if submodules else {}
    for path in filter(scratch.is_repository, submodules):
        folder = scratch.repository.top / os.fsdecode(path)
        head = find_commit(folder, "HEAD", {"GIT_DIR": str(folder / ".git")})
        if head and (path not in entries or entries[path].id != head):
            yield SkippedChange(path, _ANOTHER)


def snapshot_tree(root: Path, forced: Iterable[str] = ()) -> str:
    """Return the id of the tree that the working tree is: two are the same if their files are.

    Args:
        root: anywhere in the working tree.
        forced: files that are part of it although git may be told to ignore them.

    Raises:
        InputError: no repository, or git cannot read the working tree.
    """
    with scratch_of(root) as opened:
        opened.add_all()
        opened.add_ignored(forced)
        return opened.write_tree()


def uncommitted_paths(root: Path, ignore: Sequence[str] = ()) -> list[str]:
    """Return the paths that are not as in the last commit, new files included; none if clean.

    A file whose bytes are the commit's is clean, whatever its line ends should be; so is one of
    which only a program that is not run could decide, and one that git was told not to look at.

    Args:
        root: anywhere in the working tree.
        ignore: a person's own patterns of what no record holds.

    Raises:
        InputError: no repository or no commit, or git cannot read the working tree.
    """
    with scratch_of(root) as opened:
        opened.add_all()
        comparison = compare(opened, head_commit(root), IgnoreRules(ignore))
    skipped = (item.shown for item in comparison.skipped if not item.is_unsure)
    return sorted([*(file.path for file in comparison.files), *skipped])


def check_clean(root: Path, ignore: Sequence[str] = ()) -> None:
    """Refuse a working tree with ``uncommitted_paths``, which see for the arguments.

    Raises:
        InputError: something is changed; names the paths.
    """
    paths = uncommitted_paths(root, ignore)
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

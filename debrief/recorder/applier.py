"""The verifying applier: a record's operations, applied to texts or to a folder, or not at all."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.recorder.contracts import CreateFile, DeleteFile, Operation, UpdateFile
from debrief.recorder.hunks import HunkError, apply_hunks
from debrief.recorder.paths import path_problem, shown
from debrief.recorder.scratch import EXECUTABLE, LINK, PLAIN


class FileState(Struct, frozen=True):
    """A file of a tree: its git mode and its text; of a symbolic link, the target."""

    mode: str
    text: str


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


def apply_to_folder(
    root: Path, ops: Sequence[Operation], with_crlf: Collection[str] = ()
) -> list[str]:
    """Apply the operations to the files below ``root``, all of them or none.

    Everything is verified, and every new text written beside the old ones, before the first file
    is replaced. No symbolic link on the way to a file is followed.

    Args:
        root: the folder.
        ops: what is done.
        with_crlf: paths of files that have CRLF here where the operations speak of LF.

    Returns:
        The paths that were changed, sorted.

    Raises:
        InputError: an operation cannot be applied, or the folder cannot be written.
    """
    paths = sorted({op.path for op in ops})
    for path in paths:
        if problem := path_problem(path):
            raise InputError(shown(path), problem)
    if not root.is_dir():
        raise InputError(str(root), "is not a folder")
    gone = {op.path for op in ops if isinstance(op, DeleteFile)}
    before = {path: state for path in paths if (state := _read(root, path, gone)) is not None}
    before |= {path: _ended(before[path], "\r\n", "\n") for path in with_crlf if path in before}
    after = apply_operations(before, ops)
    changed = [path for path in paths if before.get(path) != after.get(path)]
    after |= {path: _ended(after[path], "\n", "\r\n") for path in with_crlf if path in after}
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".debrief-", dir=root))
        _replace(root, scratch, changed, after)
    except (OSError, ValueError) as error:
        raise InputError(str(root), f"cannot be written: {error}") from error
    return changed


def _ended(state: FileState, old: str, new: str) -> FileState:
    return FileState(state.mode, state.text.replace(old, new))


def _replace(
    root: Path, scratch: Path, paths: Sequence[str], after: Mapping[str, FileState]
) -> None:
    moved: list[tuple[Path, Path]] = []
    try:
        staged = {
            path: _write(scratch / f"new-{number}", after[path])
            for number, path in enumerate(paths)
            if path in after
        }
        for number, path in enumerate(paths):
            if stat.S_IFMT(_mode(root / path)) not in (0, stat.S_IFDIR):
                moved.append((root / path, scratch / f"old-{number}"))
                moved[-1][0].rename(moved[-1][1])
        for path in paths:
            _prune(root, path)
        for path, file in staged.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_empty(target)
            file.rename(target)
            moved.append((file, target))
    except BaseException:
        _take_back(moved, scratch)
        for path in paths:
            _prune(root, path)
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    shutil.rmtree(scratch, ignore_errors=True)


def _take_back(moved: Sequence[tuple[Path, Path]], scratch: Path) -> None:
    try:
        for origin, place in reversed(moved):
            if _mode(place):
                origin.parent.mkdir(parents=True, exist_ok=True)
                place.rename(origin)
    except OSError as error:
        reason = f"holds files that could not be put back: {error.strerror}"
        raise InputError(str(scratch), reason, "Move them back by hand.") from error


def _remove_empty(folder: Path) -> None:
    """Remove a folder that holds nothing but folders; leave anything else alone."""
    if stat.S_ISDIR(_mode(folder)):
        for at, _, _ in os.walk(folder, topdown=False):
            Path(at).rmdir()


def _write(file: Path, state: FileState) -> Path:
    if state.mode == LINK:
        file.symlink_to(state.text)
        return file
    mode = 0o777 if state.mode == EXECUTABLE else 0o666
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(state.text.encode())
        stream.flush()
        os.fsync(stream.fileno())
    return file


def _prune(root: Path, path: str) -> None:
    """Remove the folders that are empty without the file, as git does."""
    folder = (root / path).parent
    while folder != root:
        with suppress(OSError):
            folder.rmdir()
        folder = folder.parent


def _mode(path: Path) -> int:
    """Return the mode of what is at a path, following no link; 0 where nothing is."""
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


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


def _read(root: Path, path: str, gone: set[str]) -> FileState | None:
    folder = root
    names = path.split("/")
    for depth, name in enumerate(names[:-1], 1):
        folder = folder / name
        mode = _mode(folder)
        if not mode:
            return None
        if not stat.S_ISDIR(mode):
            if "/".join(names[:depth]) in gone:
                return None
            raise InputError(shown(path), f"{shown('/'.join(names[:depth]))} is not a folder")
    file = root / path
    try:
        mode = file.lstat().st_mode
        if stat.S_ISLNK(mode):
            # A Path would tidy the target up.
            return FileState(LINK, os.readlink(os.fsencode(file)).decode())  # noqa: PTH115
        if stat.S_ISDIR(mode):
            _check_emptied(root, file, path, gone)
            return None
        if not stat.S_ISREG(mode):
            raise InputError(shown(path), "is neither a file nor a link")
        return FileState(EXECUTABLE if mode & 0o100 else PLAIN, file.read_bytes().decode())
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise InputError(shown(path), "is not UTF-8 text") from error
    except OSError as error:
        raise InputError(shown(path), f"cannot be read: {error.strerror}") from error


def _check_emptied(root: Path, folder: Path, path: str, gone: set[str]) -> None:
    for at, folders, names in os.walk(folder):
        links = [name for name in folders if (Path(at) / name).is_symlink()]
        for name in [*names, *links]:
            if (Path(at) / name).relative_to(root).as_posix() not in gone:
                raise InputError(shown(path), "is a folder")

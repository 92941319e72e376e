"""The steps of a migration, and how they are carried out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from debrief.errors import InputError
from debrief.files import atomic, make_folder
from debrief.git import git
from debrief.snapshots.capture import HOME, refuse_link

EARLIER = (".weft", ".lw_coder")
"""Names of the folders, the newer tool's first."""


class MigrationStep(Struct, frozen=True):
    """What becomes of one file, worktree or key.

    ``move`` (a worktree), ``key``, ``copy`` and ``write`` (a file with ``content`` of ours) are
    done; ``same`` and ``differs`` exist already and stay; ``left`` stays behind; ``missing`` is a
    part that is nowhere.
    """

    action: Literal["move", "key", "copy", "write", "same", "differs", "left", "missing"]
    target: Path
    source: Path | None = None
    content: bytes | None = None
    key: str = ""
    """Name of the key; its value is read from ``source`` when the step is carried out."""
    note: str = ""

    @property
    def is_to_do(self) -> bool:
        """Whether carrying out the step changes anything."""
        return self.action in ("move", "key", "copy", "write")


class Applied(Struct, frozen=True):
    """What was done."""

    files: int
    worktrees: int
    keys: int
    failures: tuple[InputError, ...]
    """Worktrees that git did not move; everything else was done all the same."""


def apply(steps: Iterable[MigrationStep]) -> Applied:
    """Carry out what a plan says.

    Raises:
        InputError: a file cannot be written, or a place to write to is a symbolic link.
    """
    files = worktrees = keys = 0
    failures: list[InputError] = []
    for step in steps:
        if step.action == "move":
            try:
                worktrees += _move(step)
            except InputError as error:
                failures.append(error)
        elif step.action == "key":
            keys += _add_key(step)
        elif step.is_to_do:
            files += _write(step)
    return Applied(files, worktrees, keys, tuple(failures))


def _move(step: MigrationStep) -> bool:
    """Have git move a worktree, with all changes in it."""
    source, target = step.source or step.target, step.target
    _refuse_links(target)
    if target.exists():
        raise InputError(str(target), "is there already", f"{source} was not moved.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_be_written(target, error) from error
    folder = source.resolve()
    git(folder.parent, "worktree", "move", str(folder), str(target.absolute()))
    return True


def _add_key(step: MigrationStep) -> bool:
    """Add a key to an environment file that its owner alone can read."""
    from dotenv import dotenv_values

    refuse_link(step.target)
    value = dotenv_values(step.source).get(step.key)
    before = step.target.read_bytes() if step.target.is_file() else b""
    if not value or dotenv_values(step.target).get(step.key):
        return False
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    start = b"\n" if before and not before.endswith(b"\n") else b""
    make_folder(step.target.parent)
    try:
        with atomic(step.target) as file:
            file.write(before + start + f"{step.key}='{quoted}'\n".encode())
    except OSError as error:
        raise _cannot_be_written(step.target, error) from error
    return True


def _write(step: MigrationStep) -> bool:
    """Write a file, unless one is there."""
    _refuse_links(step.target)
    try:
        data = step.content if step.source is None else step.source.read_bytes()
        step.target.parent.mkdir(parents=True, exist_ok=True)
        with step.target.open("xb") as file:
            file.write(data or b"")
    except FileExistsError:
        return False
    except OSError as error:
        raise _cannot_be_written(step.target, error) from error
    return True


def _refuse_links(target: Path) -> None:
    for path in (target, *target.parents):
        refuse_link(path)
        if path.name == HOME:
            break


def _cannot_be_written(path: Path, error: OSError) -> InputError:
    reason = f"cannot be written: {error.strerror}"
    return InputError(str(path), reason, "What was written before stays.")

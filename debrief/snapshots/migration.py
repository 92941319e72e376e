"""Folders of earlier tools, ``.lw_coder/`` and ``.weft/``, become ``.debrief/`` ones by copy.

Nothing is overwritten and nothing is removed. A plan of every step comes first; to apply it is to
write the files that do not exist yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from debrief.errors import InputError
from debrief.snapshots.capture import HOME, METADATA, refuse_link, shown
from debrief.snapshots.migrated_samples import JudgesOf, MigrationStep, fill_in

EARLIER = (".weft", ".lw_coder")
"""Names of the folders, the newer tool's first."""
_FOLDERS = {
    "sessions": "sessions",
    "training_data": "training_data",
    "judges": "judges",
    "plans": "plans",
    "tasks": "plans",
    "prompts": "prompts",
}
_TOOLS = {"claude-code-cli": "claude-code"}
_WITH_METADATA = ("sessions", "training_data")
_SKIPPED = frozenset({".git", "node_modules", ".venv", HOME})


def earlier_folders(place: Path) -> list[Path]:
    """Return the folders of earlier tools: ``place`` itself, in it, or at any depth below.

    Raises:
        InputError: ``place`` is no folder, or there is none.
    """
    if not place.is_dir():
        raise InputError(str(place), "is no folder", "Name a repository with .weft or .lw_coder.")
    if place.name in EARLIER:
        return [place]
    found: list[Path] = []
    for parent, folders, _ in os.walk(place):
        found += [Path(parent, name) for name in EARLIER if name in folders]
        folders[:] = sorted(set(folders) - _SKIPPED - set(EARLIER))
    if not found:
        raise InputError(str(place), "holds no .weft or .lw_coder folder", "Name another one.")
    return found


def plan_migration(folder: Path, target: Path, judges_of: JudgesOf) -> list[MigrationStep]:
    """Return every step that makes ``target`` of ``folder``; writes nothing.

    Args:
        folder: a ``.weft`` or ``.lw_coder`` folder.
        target: the ``.debrief`` folder, which may be there already.
        judges_of: loads judges, for the eval fingerprint of samples that lack one.
    """
    steps: list[MigrationStep] = []
    for path, why_not in _files(folder):
        place = _target(PurePosixPath(path.relative_to(folder).as_posix()))
        if why_not or place is None:
            note = why_not or "is of no use to Debrief"
            steps.append(MigrationStep(action="left", target=path, source=path, note=note))
        elif not _is_metadata(place):
            step = MigrationStep(action="copy", target=target / place, source=path)
            steps.append(_unless_there(step))
    for kind in _WITH_METADATA:
        for sample in sorted((folder / kind).glob("*/")):
            if sample.is_symlink():
                continue
            is_training = kind == "training_data"
            home = target / kind / sample.name
            steps += (
                step if step.action == "missing" else _unless_there(step)
                for step in fill_in(
                    sample, folder, home, is_training=is_training, judges_of=judges_of
                )
            )
    return _without_collisions(steps)


def apply(steps: Iterable[MigrationStep]) -> int:
    """Carry out what a plan says; return how many files were written.

    Raises:
        InputError: a file cannot be written, or a place to write to is a symbolic link.
    """
    written = 0
    for step in steps:
        if step.action not in ("copy", "write"):
            continue
        try:
            for path in (step.target, *step.target.parents):
                refuse_link(path)
                if path.name == HOME:
                    break
            data = step.content if step.source is None else step.source.read_bytes()
            step.target.parent.mkdir(parents=True, exist_ok=True)
            with step.target.open("xb") as file:
                file.write(data or b"")
        except FileExistsError:
            continue
        except OSError as error:
            reason = f"cannot be written: {error.strerror}"
            raise InputError(str(step.target), reason, "What was written before stays.") from error
        written += 1
    return written


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file, and why it cannot be taken over; a worktree counts as one."""
    for parent, folders, names in os.walk(folder):
        at = Path(parent)
        if at == folder / "worktrees":
            for name in sorted(folders):
                why = "is a git worktree: its sessions are found by its name, git keeps its files"
                yield at / name, why
            folders.clear()
        folders.sort()
        for name in sorted({*names, *(each for each in folders if (at / each).is_symlink())}):
            path = at / name
            if path.is_symlink():
                yield path, "is a symbolic link"
            elif not path.is_file():
                yield path, "is no ordinary file"
            elif shown(str(path)) != str(path):
                yield path, "has a name that is not UTF-8"
            else:
                yield path, ""


def _target(path: PurePosixPath) -> PurePosixPath | None:
    """Return where a file goes below ``.debrief``; None when Debrief has no use for it."""
    top = _FOLDERS.get(path.parts[0])
    if top is None or len(path.parts) < 2:
        return None
    rest = list(path.parts[1:])
    if top == "prompts":
        rest = [_TOOLS.get(part, part) for part in rest]
    return PurePosixPath(top, *rest)


def _is_metadata(path: PurePosixPath) -> bool:
    """Return whether a file is a sample's ``metadata.json``, which is filled in, not copied."""
    return path.name == METADATA and len(path.parts) == 3 and path.parts[0] in _WITH_METADATA


def _unless_there(step: MigrationStep) -> MigrationStep:
    """Return a step, or in its place the one that leaves an existing file alone."""
    if not step.target.exists():
        return step
    try:
        data = step.source.read_bytes() if step.source else step.content
        if step.target.is_file() and step.target.read_bytes() == data:
            return MigrationStep(action="same", target=step.target)
    except OSError as error:
        note = f"cannot be read: {error.strerror}"
        return MigrationStep(action="left", target=step.source or step.target, note=note)
    note = "is there already, and stays as it is"
    return MigrationStep(action="differs", target=step.target, note=note)


def _without_collisions(steps: Iterable[MigrationStep]) -> list[MigrationStep]:
    """Leave the second of two files for one target behind, with a note."""
    taken: set[Path] = set()
    kept: list[MigrationStep] = []
    for step in steps:
        if step.action in ("copy", "write"):
            if step.target in taken:
                note = f"another file goes to {step.target}"
                left = step.source or step.target
                kept.append(MigrationStep(action="left", target=left, note=note))
                continue
            taken.add(step.target)
        kept.append(step)
    return kept

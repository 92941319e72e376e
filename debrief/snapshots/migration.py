"""Folders of earlier tools, ``.lw_coder/`` and ``.weft/``, become ``.debrief/`` ones by copy.

Nothing is overwritten and nothing is taken away. A plan of every step comes first; carrying it
out afterwards is a matter of writing files that are not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Literal

from msgspec import Struct

from debrief.errors import InputError
from debrief.snapshots.fingerprint import FingerprintedJudge
from debrief.snapshots.migrated_samples import fill_in
from debrief.snapshots.prompts import shown
from debrief.snapshots.repositories import HOME
from debrief.snapshots.writing import METADATA

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
_PASSED_OVER = frozenset({".git", "node_modules", ".venv", HOME})

Action = Literal["copy", "write", "same", "differs", "left", "missing"]
JudgesOf = Callable[[Path], Iterable[FingerprintedJudge]]
"""Loads the judges of a folder; may raise a DebriefError."""


class Step(Struct, frozen=True, kw_only=True):
    """What becomes of one file.

    ``copy`` and ``write`` (a file with ``content`` of ours) are done; ``same`` and ``differs``
    tell of a file that is there already and stays; ``left`` stays behind; ``missing`` is a part
    that nobody has.
    """

    action: Action
    target: Path
    source: Path | None = None
    content: bytes | None = None
    note: str = ""


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
        folders[:] = sorted(set(folders) - _PASSED_OVER - set(EARLIER))
    if not found:
        raise InputError(str(place), "holds no .weft or .lw_coder folder", "Name another one.")
    return found


def plan_migration(folder: Path, target: Path, judges_of: JudgesOf) -> list[Step]:
    """Return every step that makes ``target`` of ``folder``; writes nothing.

    Args:
        folder: a ``.weft`` or ``.lw_coder`` folder.
        target: the ``.debrief`` folder, which may be there already.
        judges_of: loads judges, for the eval fingerprint of samples that lack one.
    """
    steps: list[Step] = []
    for path, why_not in _files(folder):
        place = _place(PurePosixPath(path.relative_to(folder).as_posix()))
        if why_not or place is None:
            note = why_not or "is of no use to Debrief"
            steps.append(Step(action="left", target=path, source=path, note=note))
        elif place.name == METADATA and len(place.parts) == 3 and place.parts[0] in _WITH_METADATA:
            continue
        else:
            steps.append(_copied(path, target / place))
    for kind in _WITH_METADATA:
        for sample in _samples(folder / kind):
            filled = fill_in(
                sample, folder, is_training=kind == "training_data", judges_of=judges_of
            )
            home = target / kind / sample.name
            steps += [_written(home / part.path, part.content, part.note) for part in filled.parts]
            steps += [
                Step(action="missing", target=home / part, note=note)
                for part, note in filled.missing
            ]
    return _each_once(steps)


def apply(steps: Iterable[Step]) -> int:
    """Carry out what a plan says; return how many files were written.

    Raises:
        InputError: a file cannot be written, or a place to write to is a symbolic link.
    """
    written = 0
    for step in steps:
        if step.action not in ("copy", "write"):
            continue
        try:
            _refuse_links(step.target)
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
    """Yield every file, and why it cannot be taken over; a worktree is told as one."""
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


def _place(path: PurePosixPath) -> PurePosixPath | None:
    """Return where a file goes below ``.debrief``; None when Debrief has no use for it."""
    top = _FOLDERS.get(path.parts[0])
    if top is None or len(path.parts) < 2:
        return None
    rest = list(path.parts[1:])
    if top == "prompts":
        rest = [_TOOLS.get(part, part) for part in rest]
    return PurePosixPath(top, *rest)


def _samples(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink())


def _copied(source: Path, target: Path) -> Step:
    if not target.exists():
        return Step(action="copy", target=target, source=source)
    try:
        return _kept(target, source.read_bytes())
    except OSError as error:
        note = f"cannot be read: {error.strerror}"
        return Step(action="left", target=source, source=source, note=note)


def _written(target: Path, content: bytes, note: str) -> Step:
    if not target.exists():
        return Step(action="write", target=target, content=content, note=note)
    return _kept(target, content)


def _kept(target: Path, content: bytes) -> Step:
    if target.is_file() and target.read_bytes() == content:
        return Step(action="same", target=target)
    return Step(action="differs", target=target, note="is there already, and stays as it is")


def _each_once(steps: list[Step]) -> list[Step]:
    """Let the first of two steps to one place stand, and tell of the other."""
    taken: set[Path] = set()
    kept: list[Step] = []
    for step in steps:
        if step.action in ("copy", "write"):
            if step.target in taken:
                note = f"another file goes to {step.target}"
                kept.append(Step(action="left", target=step.source or step.target, note=note))
                continue
            taken.add(step.target)
        kept.append(step)
    return kept


def _refuse_links(target: Path) -> None:
    for place in (target, *target.parents):
        if place.is_symlink():
            raise InputError(str(place), "is a symbolic link, which nothing is written through")
        if place.name == HOME:
            return

"""Plan what becomes of every file of an earlier tool's folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from debrief.errors import InputError
from debrief.markdown import counted
from debrief.snapshots.capture import HOME, METADATA, PROMPTS, shown
from debrief.snapshots.migration.samples import JudgesOf, capture_of, fill_in, ids_of
from debrief.snapshots.migration.steps import EARLIER, MigrationStep
from debrief.snapshots.migration.worktrees import WORKTREES, plan_worktrees

_TAKEN = ("sessions", "training_data", "judges", "plans", "prompts")
_RENAMED = {"tasks": "plans", "claude-code-cli": "claude-code"}
_WITH_METADATA = ("sessions", "training_data")
_SKIPPED = frozenset({".git", "node_modules", ".venv", HOME})
_NOT_TAKEN = {
    ".env": "holds keys, which are taken over one by one from the home folder's alone",
    "config.toml": "configures the earlier tool; docs/settings.md names Debrief's settings",
    "dspy_cache": "is a cache of answers; Debrief keeps its own",
}
_UNKNOWN = "is nothing that Debrief reads"


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


def plan_migration(
    folder: Path,
    target: Path,
    judges_of: JudgesOf,
    is_left_out: Callable[[Iterable[str]], bool] = lambda ids: False,
) -> list[MigrationStep]:
    """Return every step that makes ``target`` of ``folder``; writes nothing.

    Args:
        folder: a ``.weft`` or ``.lw_coder`` folder.
        target: the ``.debrief`` folder, which may be there already.
        judges_of: loads judges, for the eval fingerprint of samples that lack one.
        is_left_out: says by its ids whether a sample stays behind, as a forgotten session's does.
    """
    staying = {
        sample
        for kind in _WITH_METADATA
        for sample in (folder / kind).glob("*/")
        if is_left_out([sample.name, *ids_of(sample)])
    }
    steps = plan_worktrees(folder, target)
    for path, why_not in _files(folder):
        place = _target(folder, path.relative_to(folder))
        if not staying.isdisjoint(path.parents):
            steps.append(MigrationStep("left", path, note="is of a forgotten session"))
        elif why_not:
            steps.append(MigrationStep("left", path, note=why_not))
        elif place.parts[0] not in _WITH_METADATA or place.parts[2:] != (METADATA,):
            steps.append(MigrationStep("copy", target / place, path))
    for kind in _WITH_METADATA:
        for sample in sorted((folder / kind).glob("*/")):
            if not sample.is_symlink() and sample not in staying:
                home = target / kind / sample.name
                is_training = kind == "training_data"
                steps += fill_in(sample, folder, home, is_training=is_training, judges_of=judges_of)
    taken: set[Path] = set()
    return [_settled(step, taken) for step in steps]


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every file, and why it stays behind; a folder of no use counts as one."""
    for top in sorted(folder.iterdir()):
        if top.name == WORKTREES:
            continue
        if top.is_symlink():
            yield top, "is a symbolic link"
        elif not top.is_dir():
            yield top, _NOT_TAKEN.get(top.name, _UNKNOWN)
        elif _RENAMED.get(top.name, top.name) in _TAKEN:
            yield from _files_below(top)
        else:
            files = sum(len(names) for _, _, names in os.walk(top))
            yield top, f"{_NOT_TAKEN.get(top.name, _UNKNOWN)}: {counted(files, 'file')}"


def _files_below(top: Path) -> Iterator[tuple[Path, str]]:
    for parent, folders, names in os.walk(top):
        folders.sort()
        at = Path(parent)
        for name in sorted({*names, *(folder for folder in folders if (at / folder).is_symlink())}):
            path = at / name
            if path.is_symlink():
                yield path, "is a symbolic link"
            elif not path.is_file():
                yield path, "is no ordinary file"
            elif shown(str(path)) != str(path):
                yield path, "has a name that is not UTF-8"
            else:
                yield path, ""


def _target(folder: Path, path: Path) -> Path:
    """Return where a file goes below ``.debrief``."""
    kind = _RENAMED.get(path.parts[0], path.parts[0])
    rest = path.parts[1:]
    if kind == "prompts":
        rest = tuple(_RENAMED.get(part, part) for part in rest)
    elif kind == "sessions" and len(rest) > 1:
        sample = folder / path.parts[0] / rest[0]
        source = folder / path
        place = capture_of(sample)
        if source == place / METADATA or place / PROMPTS in source.parents:
            rest = (rest[0], *source.relative_to(place).parts)
    return Path(kind, *rest)


def _settled(step: MigrationStep, taken: set[Path]) -> MigrationStep:
    """Return a step, or in its place the one that leaves alone what is in its way.

    Args:
        step: of any action.
        taken: where the steps before it write; its own target is added.
    """
    if step.action not in ("copy", "write"):
        return step
    left = step.source or step.target
    try:
        if step.target.exists():
            data = step.source.read_bytes() if step.source else step.content
            if step.target.is_file() and step.target.read_bytes() == data:
                return MigrationStep("same", step.target)
            note = "is there already, and stays as it is"
            return MigrationStep("differs", step.target, note=note)
    except OSError as error:
        return MigrationStep("left", left, note=f"cannot be read: {error.strerror}")
    if step.target in taken:
        return MigrationStep("left", left, note=f"another file goes to {step.target}")
    taken.add(step.target)
    return step

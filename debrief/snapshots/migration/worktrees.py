"""Worktrees of plans, which git moves: it keeps where each of them is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import git
from debrief.keys import slugify
from debrief.snapshots.migration.steps import EARLIER, MigrationStep

WORKTREES = "worktrees"


class _Worktree(Struct, frozen=True):
    """A linked worktree as git lists it."""

    place: Path
    """Relative to the folder of worktrees."""
    holds: str
    """Its branch, else its commit."""
    lock: str | None
    """Why it is locked; None when it is not."""


def move_of_earlier_worktree(root: Path, plan_id: str) -> str:
    """Return the next move where a plan's worktree is an earlier tool's; empty without one."""
    folders = (root / name / WORKTREES / plan_id for name in EARLIER)
    folder = next((folder for folder in folders if folder.is_dir()), None)
    return f"Run: debrief migrate --apply {root}, which moves {folder} over." if folder else ""


def plan_worktrees(folder: Path, target: Path) -> list[MigrationStep]:
    """Return the steps that move worktrees, and those that say which ones stay and why.

    Args:
        folder: a ``.weft`` or ``.lw_coder`` folder.
        target: the ``.debrief`` folder.
    """
    top = folder / WORKTREES
    if top.is_symlink():
        return [MigrationStep("left", top, note="is a symbolic link")]
    listed, reason = _listed(top)
    places = {worktree.place for worktree in listed}
    inner = {place for place in places if not places.isdisjoint(place.parents)}
    steps = [
        _step(top, worktree, target / WORKTREES / worktree.place, inner)
        for worktree in listed
        if worktree.place not in inner
    ]
    above = {top / parent for place in places for parent in (place, *place.parents)}
    return [*steps, *_others(top, above, reason)]


def _step(top: Path, worktree: _Worktree, target: Path, inner: set[Path]) -> MigrationStep:
    source = top / worktree.place

    def left(note: str) -> MigrationStep:
        return MigrationStep("left", source, note=note)

    if not source.exists():
        return left(f"is gone; git worktree prune forgets it, {worktree.holds} stays")
    if not (source / ".git").is_file():
        return left("has lost its .git file; run git worktree repair, then migrate again")
    if worktree.lock is not None:
        why = f" ({worktree.lock})" if worktree.lock else ""
        return left(f"is locked{why}; run git worktree unlock {source}, then migrate again")
    if nested := sorted(place for place in inner if worktree.place in place.parents):
        return left(f"has another worktree in it; move {top / nested[0]} out of it first")
    if target.exists() or target.is_symlink():
        note = f"is there already, and stays as it is; {source} is not moved"
        return MigrationStep("differs", target, note=note)
    try:
        git_folder = Path(git(source, "rev-parse", "--absolute-git-dir").decode().strip())
    except InputError as error:
        return left(error.reason)
    if (git_folder / "modules").is_dir():
        again = f"git worktree add {target} {worktree.holds.partition(' ')[2]}"
        return left(
            "has submodules, and git moves no such worktree; commit what is in it, remove it with "
            f"git worktree remove --force, then {again}"
        )
    note = f"from {source}, {worktree.holds}, with its changes"
    if slugify(worktree.place.name) != worktree.place.name:
        note += "; eval takes plan ids in lower case: rename it with git worktree move"
    return MigrationStep("move", target, source, note=note)


def _listed(top: Path) -> tuple[list[_Worktree], str]:
    """Return the worktrees of the repository in a folder, and why git lists none."""
    try:
        listing = git(top.parent, "worktree", "list", "--porcelain")
    except InputError as error:
        return [], error.reason
    found: list[_Worktree] = []
    for block in listing.decode("utf-8", "surrogateescape").split("\n\n"):
        fields = dict(line.partition(" ")[::2] for line in block.splitlines())
        path = Path(fields.get("worktree", "/")).resolve()
        if path.is_relative_to(top.resolve()) and path != top.resolve():
            branch = fields.get("branch", "").removeprefix("refs/heads/")
            holds = f"branch {branch}" if branch else f"commit {fields.get('HEAD', '')[:12]}"
            found.append(_Worktree(path.relative_to(top.resolve()), holds, fields.get("locked")))
    return sorted(found, key=lambda worktree: worktree.place), ""


def _others(top: Path, known: set[Path], reason: str) -> Iterator[MigrationStep]:
    """Yield a step for whatever else is in the folder of worktrees."""
    for path in sorted(top.iterdir()) if top.is_dir() else ():
        if path in known:
            continue
        if path.is_symlink():
            note = "is a symbolic link"
        elif (path / ".git").is_file():
            note = reason or (
                "is no worktree of this repository; if the repository was moved, run "
                f"git worktree repair {path}, then migrate again"
            )
        else:
            note = "is no git worktree"
        yield MigrationStep("left", path, note=note)

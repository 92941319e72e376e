"""What the shell completes; imports nothing that takes time."""

from __future__ import annotations

from pathlib import Path

from debrief.snapshots.repositories import HOME, find_repository


def worktree_ids(folder: Path) -> list[str]:
    """Return the plans of a folder's repository that have a worktree; none outside of one."""
    repository = find_repository(folder)
    place = repository.root / HOME / "worktrees" if repository else None
    if place is None or not place.is_dir():
        return []
    return sorted(
        path.name for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")
    )

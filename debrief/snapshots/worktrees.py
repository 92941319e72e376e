"""The git worktree in which a plan is carried out."""

from __future__ import annotations

from pathlib import Path

from debrief.errors import InputError
from debrief.git import git
from debrief.snapshots.repositories import HOME, Repository

_TIMEOUT = 600.0


def worktree_folder(root: Path, plan_id: str) -> Path:
    """Return where a plan's worktree is or would be."""
    return root / HOME / "worktrees" / plan_id


def ensure_worktree(repository: Repository, plan_id: str) -> bool:
    """Make a plan's worktree on a branch named as the plan; True when it was not there.

    A worktree that is there is used as it is; a branch that is there is checked out, otherwise
    it starts at the repository's HEAD.

    Raises:
        InputError: the folder is something else, the repository has no commit yet, or git
            refuses, as when the branch is checked out elsewhere.
    """
    root, folder = repository.root, worktree_folder(repository.root, plan_id)
    if folder.is_symlink():
        raise InputError(str(folder), "is a symbolic link, not a worktree", "Remove the link.")
    known = _worktrees(root)
    if folder.exists():
        if folder.resolve() not in known:
            raise InputError(str(folder), "is there, and no worktree", "Move it away.")
        return False
    if not _has(root, "HEAD"):
        raise InputError(str(root), "has no commit yet", "Commit something first.")
    if folder.resolve() in known:
        git(root, "worktree", "prune")
    folder.parent.mkdir(parents=True, exist_ok=True)
    branch = f"refs/heads/{plan_id}"
    what = [str(folder), plan_id] if _has(root, branch) else ["-b", plan_id, str(folder), "HEAD"]
    git(root, "worktree", "add", "--quiet", *what, timeout=_TIMEOUT)
    return True


def _worktrees(root: Path) -> set[Path]:
    listing = git(root, "worktree", "list", "--porcelain").decode("utf-8", "surrogateescape")
    return {
        Path(line.removeprefix("worktree ")).resolve()
        for line in listing.splitlines()
        if line.startswith("worktree ")
    }


def _has(root: Path, revision: str) -> bool:
    try:
        git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    except InputError:
        return False
    return True

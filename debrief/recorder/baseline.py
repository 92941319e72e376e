"""Where a session starts: the worktree, the commit, and what the repository is called."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import git
from debrief.recorder.repository import (
    QUIET,
    Repository,
    head_commit,
    open_repository,
    origin_of,
    without_credentials,
)

_OF_A_SERVER = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://[^/]|[^/@:\s]{2,}:(?!//)[^\s]")


class Baseline(Struct, frozen=True, kw_only=True):
    """A worktree at the start of a session."""

    worktree: Path
    """Its top folder, links resolved."""
    repo_name: str
    """Name of the repository's main folder, the same in all of its worktrees."""
    repo_remote: str | None
    branch: str | None
    """None where HEAD is detached."""
    base_ref: str
    """The commit that HEAD is."""


def worktree_of(folder: Path) -> Path:
    """Return the top folder of the worktree that ``folder`` lies in, links resolved.

    Raises:
        InputError: it lies in none.
    """
    return _opened(folder).top.resolve()


def baseline_of(folder: Path) -> Baseline:
    """Describe the worktree that ``folder`` lies in.

    Raises:
        InputError: it lies in none, or there is no commit yet.
    """
    repository = _opened(folder)
    origin = origin_of(repository.top)
    return Baseline(
        worktree=repository.top.resolve(),
        repo_name=_name(repository) or origin.name,
        repo_remote=public_remote(origin.remote) if origin.remote else None,
        branch=origin.branch,
        base_ref=head_commit(repository.top),
    )


def has_commit(worktree: Path, commit: str) -> bool:
    """Return whether a commit is in the repository, as far as its own object goes."""
    try:
        git(worktree, "cat-file", "-e", f"{commit}^{{commit}}", environment=QUIET)
    except InputError:
        return False
    return True


def public_remote(address: str) -> str | None:
    """Return a remote's address without credentials; None for a path on this machine."""
    address = without_credentials(address.strip())
    return address if _OF_A_SERVER.match(address) else None


def _opened(folder: Path) -> Repository:
    if not folder.is_dir():
        raise InputError(str(folder), "is no folder", "Name a folder inside a git repository.")
    try:
        return open_repository(folder)
    except InputError as error:
        if "must be run in a work tree" in error.reason:
            raise InputError(
                str(folder.resolve()),
                "is in a bare repository, or in a .git folder: there are no files to record",
                "Name a folder of its working tree: --repo FOLDER",
            ) from error
        if "not a git repository" not in error.reason:
            raise
        raise InputError(
            str(folder.resolve()), "lies in no git repository", "Name one: --repo FOLDER"
        ) from error


def _name(repository: Repository) -> str:
    """Return the name of the folder that a linked worktree belongs to; empty for a main one."""
    if repository.common_dir == repository.git_dir:
        return ""
    shared = repository.common_dir
    name = (shared.parent if shared.name == ".git" else shared).name.removesuffix(".git")
    return name.encode("utf-8", "replace").decode()

"""Prompts of a session that nobody captured, read from its repository's history.

What git holds is what was committed before the session began: close to what was in force, and
not the same, since uncommitted edits and the user's own settings are not in it. Such a snapshot
is therefore always marked ``reconstructed``.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from pathlib import Path

from debrief.errors import InputError
from debrief.git import git
from debrief.snapshots.model import PromptSnapshot
from debrief.snapshots.prompts import (
    AGENTS_FOLDER,
    CLAUDE_CODE,
    DROID,
    MAIN_FILES,
    OTHER_MAIN_FILES,
    subagent_names,
)

_SUBAGENT_FOLDERS = {CLAUDE_CODE: AGENTS_FOLDER, DROID: ".factory/droids"}


def reconstruct(
    repository: Path, tool: str, branch: str, moment: datetime, known: str = ""
) -> tuple[PromptSnapshot, str] | None:
    """Return the prompts at the session's commit, and the commit; None without any.

    That is the one that is known, else, and where the repository does not have it, the last
    before ``moment``.

    Args:
        repository: a folder inside the repository's work tree.
        tool: which tool's files to look for.
        branch: the session's branch; HEAD is taken when it is gone.
        moment: when the session began.
        known: the commit that the session says it began at; empty when it does not tell.
    """
    if not repository.is_dir():
        return None
    commit = known if known and _has(repository, known) else None
    commit = commit or _commit_before(repository, branch, int(moment.timestamp()))
    if commit is None:
        return None
    snapshot = _snapshot_at(repository, tool, commit)
    return (snapshot, commit) if snapshot is not None else None


def commit_at(repository: Path, branch: str, moment: datetime) -> str:
    """Return the commit that a branch was at at a moment; empty when git cannot tell.

    Args:
        repository: a folder inside the repository's work tree.
        branch: HEAD is taken when it is gone.
        moment: the last commit before it is meant.
    """
    if not repository.is_dir():
        return ""
    return _commit_before(repository, branch, int(moment.timestamp())) or ""


@lru_cache(maxsize=1024)
def _commit_before(repository: Path, branch: str, moment: int) -> str | None:
    for revision in dict.fromkeys((branch, "HEAD")):
        if not revision or revision.startswith("-"):
            continue
        try:
            found = git(repository, "rev-list", "-1", f"--before={moment}", revision, "--")
        except InputError:
            continue
        if found.strip():
            return found.decode("ascii").strip()
    return None


@lru_cache(maxsize=1024)
def _has(repository: Path, commit: str) -> bool:
    try:
        git(repository, "cat-file", "-e", f"{commit}^{{commit}}")
    except InputError:
        return False
    return True


@lru_cache(maxsize=256)
def _snapshot_at(repository: Path, tool: str, commit: str) -> PromptSnapshot | None:
    main_files = MAIN_FILES.get(tool, OTHER_MAIN_FILES)
    agents = _SUBAGENT_FOLDERS.get(tool)
    wanted = [*main_files, *([f"{agents}/"] if agents else [])]
    try:
        listing = git(repository, "ls-tree", "-r", "-z", "--full-tree", commit, "--", *wanted)
    except InputError:
        return None
    blobs: dict[str, str] = {}
    for entry in listing.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        fields = about.split()
        if len(fields) == 3 and fields[1] == b"blob" and fields[0] != b"120000":
            blobs[path.decode("utf-8", "replace")] = fields[2].decode("ascii")
    main = next((blobs[name] for name in main_files if name in blobs), None)
    files = {
        path.removeprefix(f"{agents}/"): blob
        for path, blob in blobs.items()
        if agents and path.startswith(f"{agents}/") and path.endswith(".md")
    }
    if main is None and not files:
        return None
    names = subagent_names(files)
    return PromptSnapshot(
        main=_text(repository, main) if main is not None else "",
        subagents={names[path]: _text(repository, blob) for path, blob in files.items()},
    )


def _text(repository: Path, blob: str) -> str:
    return git(repository, "cat-file", "blob", blob).decode("utf-8", "replace")

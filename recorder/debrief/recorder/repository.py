"""A worktree at the start of a session, and the commit that the session's changes start from.

Nothing here runs a program that the repository names, fetches anything, or writes anywhere.

HEAD's reflog says how each commit came to be checked out: made here, or brought in by a merge, a
rebase, a pull or a change of branches. A session's changes are what differs from the newest commit
that was not made in it, where such a commit holds none of the session's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import Repository, find_commit, git, open_repository
from debrief.markdown import counted
from debrief.recorder.contracts import OthersWork

_PUBLIC = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://[^/]|[^/@:\s]{2,}:(?!//)[^\s]")
"""Addresses that are not a path on this machine."""


class Baseline(Struct, frozen=True, kw_only=True):
    """A worktree at the start of a session."""

    worktree: Path
    """Its top folder, links resolved."""
    repo_name: str
    """Name of the repository's main folder, the same in all of its worktrees."""
    repo_remote: str | None
    """Address of the remote ``origin`` without credentials; None for a path on this machine."""
    branch: str | None
    """None where HEAD is detached."""
    base_ref: str
    """The commit that HEAD is at."""


def worktree_of(folder: Path) -> Path:
    """Return the top folder of the worktree that ``folder`` lies in, links resolved.

    Raises:
        InputError: it lies in none.
    """
    return _open_worktree(folder).top.resolve()


def baseline_of(folder: Path) -> Baseline:
    """Describe the worktree that ``folder`` lies in.

    Raises:
        InputError: it lies in none, or there is no commit yet.
    """
    repository = _open_worktree(folder)
    try:
        reference = _ask(repository.top, "symbolic-ref", "--quiet", "HEAD")
        branch = _text(reference).removeprefix("refs/heads/")
    except InputError:
        branch = None
    main = repository.top
    if repository.common_dir != repository.git_dir:
        main = repository.common_dir
        main = main.parent if main.name == ".git" else main
    remote = repository.remote
    return Baseline(
        worktree=repository.top.resolve(),
        repo_name=_text(os.fsencode(main.name)).removesuffix(".git") or "repository",
        repo_remote=public_remote(_text(os.fsencode(remote))) if remote else None,
        branch=branch,
        base_ref=head_commit(repository.top),
    )


def head_commit(folder: Path) -> str:
    """Return the id of the commit that HEAD is at.

    Raises:
        InputError: there is no commit yet.
    """
    head = find_commit(folder, "HEAD")
    if head is None:
        error = InputError(str(folder), "has no commit yet", "Commit something first.")
        raise error.known_as("no-commit")
    return head


def public_remote(address: str) -> str | None:
    """Return a remote's address without credentials; None for a path on this machine."""
    address = without_credentials(address.strip())
    return address if _PUBLIC.match(address) else None


def without_credentials(address: str) -> str:
    """Return a remote's address without user name, password, query and fragment.

    >>> without_credentials("https://me:secret@example.org/a/b.git?token=1")
    'https://example.org/a/b.git'
    >>> without_credentials("git@example.org:a/b.git")
    'example.org:a/b.git'
    """
    if "://" not in address:
        return re.sub(r"^[^/@]*@", "", address)
    try:
        parts = urlsplit(address)
    except ValueError:
        return address.split("://")[0] + "://"
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


def _open_worktree(folder: Path) -> Repository:
    """Open a repository; an error says how to name another folder on the command line."""
    if not folder.is_dir():
        error = InputError(str(folder), "is no folder", "Name a folder inside a git repository.")
        raise error.known_as("no-folder")
    try:
        return open_repository(folder)
    except InputError as error:
        if "must be run in a work tree" in error.reason:
            raise InputError(
                str(folder.resolve()),
                "is in a bare repository, or in a .git folder: there are no files to record",
                "Name a folder of its working tree: --repo FOLDER",
            ).known_as("not-a-repository") from error
        if "not a git repository" not in error.reason:
            raise
        raise InputError(
            str(folder.resolve()), "lies in no git repository", "Name one: --repo FOLDER"
        ).known_as("not-a-repository") from error


def _ask(folder: Path, *arguments: str) -> bytes:
    return git(folder, *arguments).removesuffix(b"\n")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


_FORMAT = "%x09%H%x00%P%x00%an%x01%ae%x01%at%x01%s%x00%cn%x01%ce%x01%ct%x00%gn%x01%ge%x01%gd%x00%gs"
_COMMIT = re.compile(r"(commit( \((amend|initial)\))?|revert): ")
_REPLAY = re.compile(r"(.*\((pick|reword|edit|continue)\)|cherry-pick|am): ")
_SQUASH = re.compile(r".*\((squash|fixup)\): ")
_MOVE = re.compile(r"(reset|checkout|clone|branch|merge|pull)\b|.*\((start|finish)\)|.*ast-forward")
_SWITCH = re.compile(r"checkout: |.*\(start\): ")
_UNDER_WAY = {"MERGE_HEAD": "a merge", "rebase-merge": "a rebase", "rebase-apply": "a rebase"}
_BETWEEN = "commits of others came in between the session's own"


class Base(Struct, frozen=True, kw_only=True):
    """The commit that a session's changes start from."""

    commit: str
    others: OthersWork | None = None


class _Entry(Struct, frozen=True):
    """A line of HEAD's reflog, and the commit that it left checked out."""

    commit: str
    parents: tuple[str, ...]
    author: str
    """With the time and the subject: a rebase keeps all of it."""
    committer: str
    actor: str
    """Who moved HEAD, and when, as ``committer`` is written."""
    message: str


def reflog_size(worktree: Path) -> int:
    """Return how many lines HEAD's reflog has."""
    return len(_reflog(worktree))


def base_of(worktree: Path, first: str, lines_before: int | None) -> Base:
    """Return the commit that a session's changes start from by now.

    Args:
        worktree: the session's.
        first: the commit that it began at.
        lines_before: of HEAD's reflog, when it began; None: not known.

    Raises:
        InputError: that commit is gone, or git cannot tell the commits that came in.
    """
    head = head_commit(worktree)
    if head != first and find_commit(worktree, first) is None:
        raise InputError(
            str(worktree),
            f"no longer has the commit that the session began at, {first}",
            "Fetch it from where it still is (git fetch REMOTE COMMIT), or give the session up: "
            "debrief record discard",
        )
    git_dir = open_repository(worktree).git_dir
    for name, action in _UNDER_WAY.items():
        if (git_dir / name).exists():
            return _mixed(worktree, first, head, f"{action} is under way")
    if head == first:
        return Base(commit=first)
    lines = _reflog(worktree)
    count = -1 if lines_before is None else len(lines) - lines_before
    begun_at = [line.commit for line in lines[count : count + 1]]
    if count < 1 or lines[0].commit != head or begun_at != [first]:
        return _mixed(worktree, first, head, "git's reflog does not say where commits came from")
    history = _History(lines[: count + 1][::-1])
    found = history.newest_of_others(head)
    if _SQUASH in history.kinds:
        return _mixed(worktree, first, head, "commits were squashed by a rebase")
    if _holds(worktree, found, first, history.own):
        tips = history.tips_of_others(head)
        newest = _git(worktree, "merge-base", "--independent", *sorted(tips)).split()
        if len(newest) > 1 or _holds(worktree, newest[0], first, history.own):
            return _mixed(worktree, first, head, _BETWEEN)
        found = newest[0]
    is_new = _git(worktree, "rev-list", "-1", found, f"^{first}").strip()
    if found == first or not (is_new or history.switched_to(found)):
        # Who goes back to an earlier commit undoes what came after it.
        return Base(commit=first)
    return Base(commit=found, others=_others(worktree, first, found))


def warning_of(base: str, others: OthersWork) -> str:
    """Return what a record warns of when others' commits came in.

    Args:
        base: the commit that its patches apply to.
        others: what came in.
    """
    if others.mixed:
        return f"the changes may hold those of others: {others.mixed}"
    came, files = counted(others.commits, "commit"), counted(others.files, "file")
    return (
        f"{came} of others came in: {files} that they changed are left out, and the patches apply "
        f"to {base} instead of {others.first_base}"
    )


class _History:
    """What the reflog says of the session's time; the first line is of the time before."""

    def __init__(self, lines: Sequence[_Entry]) -> None:
        self.own: dict[str, str] = {}
        """Commits made in the session, and what HEAD was before each."""
        self.kinds: set[re.Pattern[str]] = set()
        self._merges: dict[str, tuple[str, ...]] = {}
        self._lines = lines
        authors: set[str] = set()
        for before, line in pairwise(lines):
            if line.commit == before.commit:
                continue
            if self._is_own(before, line, authors):
                self.own.setdefault(line.commit, before.commit)
                authors.add(line.author)
            elif len(line.parents) > 1 and line.parents[0] == before.commit:
                self._merges[line.commit] = line.parents

    def _is_own(self, before: _Entry, line: _Entry, authors: set[str]) -> bool:
        if line.parents not in ((before.commit,), before.parents):
            return False
        if _SQUASH.match(line.message) and line.author not in authors:
            self.kinds.add(_SQUASH)
        is_amended = line.parents == before.parents and before.commit in self.own
        if _COMMIT.match(line.message) or is_amended:
            return True
        if _REPLAY.match(line.message) or _SQUASH.match(line.message):
            return line.author in authors
        # A program that words its lines in its own way.
        return line.committer == line.actor and not _MOVE.match(line.message)

    def newest_of_others(self, head: str) -> str:
        """Return the newest commit below HEAD that was not made in the session."""
        while head in self.own:
            head = self.own[head]
        return head

    def tips_of_others(self, head: str) -> set[str]:
        """Return the newest commits of others below HEAD, looking through the session's merges."""
        tips: set[str] = set()
        left = [head]
        while left:
            commit = self.newest_of_others(left.pop())
            left += self._merges.get(commit, ())
            if commit not in self._merges:
                tips.add(commit)
        return tips

    def switched_to(self, commit: str) -> bool:
        """Return whether HEAD went there by a change of branches or a rebase, and not a reset."""
        reached = [line for line in self._lines[1:] if line.commit == commit]
        return bool(reached) and bool(_SWITCH.match(reached[-1].message))


def _reflog(worktree: Path) -> list[_Entry]:
    """Return the lines of HEAD's reflog, the newest first; none where there is no reflog."""
    try:
        options = ("-g", "--date=unix", "--no-show-signature", "--no-patch", "--no-mailmap")
        text = _git(worktree, "log", *options, f"--format={_FORMAT}", "HEAD")
    except InputError:
        return []
    entries = []
    for line in text.split("\n"):
        if not line.startswith("\t"):
            continue
        commit, parents, author, committer, actor, message = line[1:].split("\0", 5)
        actor = actor.removesuffix("}").replace("HEAD@{", "")
        entries.append(_Entry(commit, tuple(parents.split()), author, committer, actor, message))
    return entries


def _holds(worktree: Path, commit: str, first: str, own: dict[str, str]) -> bool:
    """Return whether a commit has one of the session's own among those before it."""
    before = _git(worktree, "rev-list", commit, f"^{first}").split()
    return not own.keys().isdisjoint(before)


def _mixed(worktree: Path, first: str, head: str, reason: str) -> Base:
    return Base(commit=first, others=_others(worktree, first, head, reason))


def _others(worktree: Path, first: str, commit: str, mixed: str = "") -> OthersWork:
    paths = _git(worktree, "diff-tree", "-r", "--name-only", "--no-renames", "-z", first, commit)
    return OthersWork(
        first_base=first,
        commits=int(_git(worktree, "rev-list", "--count", commit, f"^{first}")),
        files=paths.count("\0"),
        mixed=mixed,
    )


def _git(worktree: Path, *arguments: str) -> str:
    return os.fsdecode(git(worktree, *arguments))

"""A repository and its worktree: where they are, which commit HEAD is, what shapes their blobs.

Nothing here runs a program that the repository names, fetches anything, or writes anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from msgspec import Struct

from debrief.errors import InputError
from debrief.git import find_commit, git

_SETTINGS = {
    *("core.attributesfile", "core.autocrlf", "core.checkstat", "core.eol", "core.excludesfile"),
    *("core.filemode", "core.ignorecase", "core.precomposeunicode", "core.protecthfs"),
    *("core.protectntfs", "core.sparsecheckout", "core.sparsecheckoutcone", "core.symlinks"),
    "core.trustctime",
}
"""Settings that decide which files git sees and what their blobs are; none names a program."""
_FILTER = re.compile(r"filter\.(.*)\.(clean|process)", re.DOTALL)
_PUBLIC = re.compile(r"(?!file:)[a-z][a-z0-9+.-]*://[^/]|[^/@:\s]{2,}:(?!//)[^\s]")
"""Addresses that are not a path on this machine."""

QUIET: Mapping[str, str] = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
"""Environment with which git fetches nothing, over whatever transport a repository names."""


class Repository(Struct, frozen=True, kw_only=True):
    """One worktree and its repository."""

    top: Path
    """Top folder of the working tree."""
    git_dir: Path
    """Holds this worktree's HEAD and index."""
    common_dir: Path
    """Holds the objects; another one than ``git_dir`` in a linked worktree."""
    object_format: str
    """``sha1`` or ``sha256``."""
    settings: Mapping[str, str]
    """Those settings of the repository, the person and the machine that shape blobs."""
    filters: frozenset[str]
    """Names of filters that would run a program on a file's way into the repository."""
    remote: str | None
    """Address of the remote ``origin``, as it is configured."""


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


def open_repository(folder: Path) -> Repository:
    """Describe the repository that ``folder`` lies in.

    Raises:
        InputError: it lies in none, in a bare one, or in one whose working tree is elsewhere.
    """
    options = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-object-format")
    ask = ("rev-parse", "--path-format=absolute")
    top, git_dir, common_dir, object_format = (
        os.fsdecode(_ask(folder, *ask, option)) for option in options
    )
    if not _belongs(Path(top), Path(git_dir)):
        raise InputError(
            top,
            f"is configured as the working tree of {git_dir}, and does not point back to it",
            "Unset core.worktree there, or name the folder that holds .git.",
        )
    config = [
        os.fsdecode(item).partition("\n")
        for item in _ask(Path(top), "config", "--list", "-z").split(b"\0")
    ]
    values = {key: value if separator else "true" for key, separator, value in config}
    filters = [(_FILTER.fullmatch(key), value) for key, _, value in config]
    return Repository(
        top=Path(top),
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        object_format=object_format,
        settings={key: value for key, value in values.items() if key in _SETTINGS},
        filters=frozenset(match[1] for match, value in filters if match and value),
        remote=values.get("remote.origin.url"),
    )


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
    head = find_commit(folder, "HEAD", QUIET)
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
    return git(folder, *arguments, environment=QUIET).removesuffix(b"\n")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "\ufffd")


def _belongs(top: Path, git_dir: Path) -> bool:
    """Return whether the working tree's own ``.git`` is, or names, the git folder."""
    marker = top / ".git"
    try:
        if marker.is_dir():
            return marker.samefile(git_dir)
        named = marker.read_bytes().removeprefix(b"gitdir:").strip()
        return (top / os.fsdecode(named)).samefile(git_dir)
    except (OSError, ValueError):
        return False


_LONGEST, _LONGEST_NAME, _DEEPEST = 4096, 255, 100
_BETWEEN = re.compile(r"[/\\]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""What some file systems drop from names."""
_GIT = frozenset({".git", "git~1"})


def path_problem(path: str) -> str:
    """Return why a record may not name ``path``; empty when it may.

    Every name that is legal in a git tree is taken, quotes and line ends included, unless some
    file system would take it for a place outside of the folder or inside of ``.git``.
    """
    if not path:
        return "an empty path"
    if "\0" in path:
        return "a path with the character NUL"
    if _SURROGATE.search(path):
        return "a path that is not UTF-8"
    if path[0] in "/\\" or _DRIVE.match(path):
        return "an absolute path"
    if len(path.encode()) > _LONGEST:
        return f"a path of over {_LONGEST:,} bytes"
    if path.count("/") > _DEEPEST:
        return f"a path of over {_DEEPEST} folders"
    for name in path.split("/"):
        if name in ("", "."):
            return "a path that has an empty part or a dot for a folder"
        if len(name.encode()) > _LONGEST_NAME:
            return f"a name of over {_LONGEST_NAME} bytes"
    for name in _BETWEEN.split(path):
        if name.rstrip(" ") == "..":
            return "a path that leaves its folder"
        plain = _INVISIBLE.sub("", name).split(":")[0].rstrip(". ").lower()
        if plain in _GIT:
            return "a path inside of .git"
    return ""

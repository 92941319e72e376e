"""A person's repository, looked at: where it is, what HEAD is, which settings shape its blobs.

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
from debrief.git import git

_SETTINGS = frozenset(
    {
        "core.attributesfile",
        "core.autocrlf",
        "core.checkstat",
        "core.eol",
        "core.excludesfile",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.protecthfs",
        "core.protectntfs",
        "core.sparsecheckout",
        "core.sparsecheckoutcone",
        "core.symlinks",
        "core.trustctime",
    }
)
"""Settings that decide which files git sees and what their blobs are; none names a program."""
_FILTER = re.compile(r"filter\.(.*)\.(clean|process)", re.DOTALL)

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


class Origin(Struct, frozen=True, kw_only=True):
    """What a repository is called and where it comes from."""

    name: str
    """The top folder's name."""
    remote: str | None
    """Address of the remote ``origin``, without user name and password."""
    branch: str | None
    """None where HEAD is detached."""


def open_repository(folder: Path) -> Repository:
    """Look at the repository that ``folder`` lies in.

    Raises:
        InputError: it lies in none, in a bare one, or in one whose working tree is elsewhere.
    """
    options = ("--show-toplevel", "--absolute-git-dir", "--show-object-format")
    lines = _ask(folder, "rev-parse", *options).split(b"\n")
    if len(lines) == len(options):
        answers = [os.fsdecode(line) for line in lines]
    else:
        answers = [os.fsdecode(_ask(folder, "rev-parse", option)) for option in options]
    top, git_dir = Path(answers[0]), Path(answers[1])
    if not _belongs(top, git_dir):
        raise InputError(
            str(top),
            f"is said to be the working tree of {git_dir}, and does not point back to it",
            "Unset core.worktree there, or name the folder that holds .git.",
        )
    settings, filters = _settings(top)
    return Repository(
        top=top,
        git_dir=git_dir,
        common_dir=_common_dir(git_dir),
        object_format=answers[2],
        settings=settings,
        filters=filters,
    )


def head_commit(folder: Path) -> str:
    """Return the id of the commit that HEAD is at.

    Raises:
        InputError: there is no commit yet.
    """
    if (found := find_head(folder)) is None:
        raise InputError(str(folder), "has no commit yet", "Commit something first.")
    return found


def find_head(folder: Path) -> str | None:
    """Return the id of the commit that HEAD is at; None where there is no commit yet."""
    try:
        return _ask(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode()
    except InputError:
        _ask(folder, "rev-parse", "--git-dir")
        return None


def origin_of(folder: Path) -> Origin:
    """Tell what the repository of ``folder`` is called and where it comes from."""
    top = Path(os.fsdecode(_ask(folder, "rev-parse", "--show-toplevel")))
    try:
        branch = _text(_ask(folder, "symbolic-ref", "--quiet", "HEAD")).removeprefix("refs/heads/")
    except InputError:
        branch = None
    try:
        remote = without_credentials(_text(_ask(folder, "config", "--get", "remote.origin.url")))
    except InputError:
        remote = None
    return Origin(name=_text(os.fsencode(top.name)) or "repository", remote=remote, branch=branch)


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


def _common_dir(git_dir: Path) -> Path:
    try:
        return Path(os.path.normpath(git_dir / (git_dir / "commondir").read_text().strip()))
    except FileNotFoundError:
        return git_dir


def _settings(top: Path) -> tuple[dict[str, str], frozenset[str]]:
    settings: dict[str, str] = {}
    drivers: dict[str, tuple[str, str]] = {}
    for item in _ask(top, "config", "--list", "-z").split(b"\0"):
        key, told, value = os.fsdecode(item).partition("\n")
        if key in _SETTINGS:
            settings[key] = value if told else "true"
        elif found := _FILTER.fullmatch(key):
            drivers[key] = (found[1], value)
    return settings, frozenset(name for name, value in drivers.values() if value)

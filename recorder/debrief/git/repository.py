"""Where a repository and its worktree are, and what of its configuration shapes their blobs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from debrief.errors import InputError
from debrief.git.program import git, settings_in

_SETTINGS = {
    *("core.attributesfile", "core.autocrlf", "core.checkstat", "core.eol", "core.excludesfile"),
    *("core.filemode", "core.ignorecase", "core.precomposeunicode", "core.protecthfs"),
    *("core.protectntfs", "core.sparsecheckout", "core.sparsecheckoutcone", "core.symlinks"),
    "core.trustctime",
}
"""Settings that decide which files git sees and what their blobs are; none names a program."""
_FILTER = re.compile(r"filter\.(.*)\.(?:clean|process)", re.DOTALL)
_HOOK = re.compile(r"hook\.(.*)\.[a-z]+", re.DOTALL)


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


def open_repository(folder: Path) -> Repository:
    """Describe the repository that ``folder`` lies in.

    Raises:
        InputError: it lies in none, in a bare one, or in one whose working tree is elsewhere.
    """

    options = ("--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--show-object-format")
    top, git_dir, common_dir, object_format = _places(folder, options)
    if not _belongs(Path(top), Path(git_dir)):
        raise InputError(
            top,
            f"is configured as the working tree of {git_dir}, and does not point back to it",
            "Unset core.worktree there, or name the folder that holds .git.",
        )
    config = _configuration(Path(top))
    filters = [(_FILTER.fullmatch(key), value) for key, value in config]
    values = dict(config)
    return Repository(
        top=Path(top),
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        object_format=object_format,
        settings={key: value for key, value in values.items() if key in _SETTINGS},
        filters=frozenset(match[1] for match, value in filters if match and value),
        remote=values.get("remote.origin.url"),
    )


def open_clone(folder: Path) -> Repository:
    """Describe the repository at ``folder``, a bare one too, to look at its objects alone.

    Its git folder stands for a working tree, and none of its settings is taken: what is made of
    its objects is the same on every machine.

    Raises:
        InputError: it is none.
    """
    options = ("--absolute-git-dir", "--git-common-dir", "--show-object-format")
    git_dir, common_dir, object_format = _places(folder, options)
    return Repository(
        top=Path(git_dir),
        git_dir=Path(git_dir),
        common_dir=Path(common_dir),
        object_format=object_format,
        settings={},
        filters=frozenset(),
        remote=None,
    )


def without_hooks(folder: Path) -> dict[str, str]:
    """Return the environment in which git runs none of the hooks that the configuration names.

    That is for git 2.54 and newer; hooks that are files are off in any case.
    """
    found = {match[1] for key, _ in _configuration(folder) if (match := _HOOK.fullmatch(key))}
    return settings_in({f"hook.{name}.enabled": "false" for name in sorted(found)})


def _places(folder: Path, options: Sequence[str]) -> list[str]:
    """Return what ``rev-parse`` answers to each option."""

    def ask(*options: str) -> list[str]:
        answer = git(folder, "rev-parse", "--path-format=absolute", *options)
        return os.fsdecode(answer.removesuffix(b"\n")).split("\n")

    places = ask(*options)
    if len(places) == len(options):
        return places
    # A path has a line end in it.
    return ["\n".join(ask(option)) for option in options]


def _configuration(folder: Path) -> list[tuple[str, str]]:
    """Return all settings that are in force, those of several values more than once."""
    items = git(folder, "config", "--list", "-z").split(b"\0")
    settings = (os.fsdecode(item).partition("\n") for item in items)
    return [(key, value if separator else "true") for key, separator, value in settings]


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

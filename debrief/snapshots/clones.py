"""Find clones of repositories that sessions worked in, when the original folders are not here.

A transcript names a folder of another machine, and at best the repository. A clone is that
repository's when its folder or one of its remotes has the name; of several, the one with the
session's commit. Where that decides nothing, it is none: history of another repository would be
taken for the session's.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from debrief.errors import InputError
from debrief.git import find_commit, git
from debrief.keys import digest_of
from debrief.sessions.model import Session, SessionHead

_DEEPEST = 3
"""Folders below a named one in which clones are looked for, such as ``host/owner/name``."""


class Clones:
    """Clones by the names that they go by."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._folders = sorted({folder.resolve() for folder in folders})
        self._named: dict[str, list[Path]] = defaultdict(list)
        for folder in self._folders:
            for name in names_of(folder):
                self._named[name].append(folder)

    def of(self, session: Session | SessionHead) -> Path | None:
        """Return the clone of a session's repository; None where there is none, or no telling."""
        found = self._named.get(session.repository.rpartition("/")[2].lower(), [])
        if len(found) > 1 and session.base_commit:
            found = [folder for folder in found if find_commit(folder, session.base_commit)]
        return found[0] if len(found) == 1 else None

    @property
    def digest(self) -> str:
        """Return a digest of what the clones' histories are; empty without any."""
        refs = [(str(folder), git(folder, "for-each-ref").decode()) for folder in self._folders]
        return digest_of(refs) if refs else ""


def find_clones(folders: Iterable[Path]) -> Clones:
    """Find the clones that ``folders`` are or hold, bare ones too."""
    return Clones(clone for folder in folders for clone in _below(folder, _DEEPEST))


def _below(folder: Path, deepest: int) -> Iterator[Path]:
    if _is_repository(folder):
        yield folder
    elif deepest:
        with suppress(OSError):
            for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    yield from _below(Path(entry.path), deepest - 1)


def _is_repository(folder: Path) -> bool:
    return (folder / ".git").exists() or (
        (folder / "HEAD").is_file() and (folder / "objects").is_dir()
    )


def names_of(folder: Path) -> set[str]:
    """Return the names of a clone, in lower case: its folder's, and its remotes'."""
    addresses = ""
    with suppress(InputError):
        addresses = git(folder, "config", "--get-regexp", r"^remote\..*\.url$").decode()
    remotes = (line.rpartition(" ")[2] for line in addresses.splitlines())
    paths = [str(folder), *remotes]
    names = (path.rstrip("/").replace(":", "/").rpartition("/")[2] for path in paths)
    return {name.removesuffix(".git").lower() for name in names} - {""}


NO_CLONES = Clones(())

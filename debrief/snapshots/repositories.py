"""Which repository a folder belongs to, and keeping captures out of its history.

Read off the files of git itself, since starting the git program is more than a hook can afford.
Standard library alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

HOME = ".debrief"
EXCLUDED = (f"/{HOME}/*", f"!/{HOME}/judges/", f"!/{HOME}/plans/", f"!/{HOME}/prompts/")
_HEADING = "# Debrief: captures and worktrees stay out; judges, plans and prompts may be committed."


class Repository(NamedTuple):
    """A git repository as one of its work trees shows it."""

    top: Path
    """The work tree's own folder."""
    root: Path
    """The main work tree, where ``.debrief/`` is; ``top`` unless that is a linked one."""
    git: Path
    """The folder that all work trees share: ``<root>/.git`` as a rule."""


def find_repository(folder: Path) -> Repository | None:
    """Return the repository that ``folder`` lies in; None when it lies in none or is not there."""
    folder = folder.resolve()
    if not folder.is_dir():
        return None
    for top in (folder, *folder.parents):
        git = top / ".git"
        if git.is_dir() and (git / "HEAD").is_file():
            return Repository(top, top, git)
        if git.is_file():
            return _linked(top, git)
    return None


def keep_out_of_history(repository: Repository) -> bool:
    """Have git ignore ``.debrief/`` but for what a team writes; True when that was news.

    Written to the repository's own ``info/exclude``, which is not tracked.

    Raises:
        OSError: the file cannot be written.
    """
    path = repository.git / "info" / "exclude"
    known = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    missing = [line for line in EXCLUDED if line not in known.splitlines()]
    if not missing:
        return False
    path.parent.mkdir(exist_ok=True)
    start = "" if known.endswith("\n") or not known else "\n"
    with path.open("ab") as file:
        file.write((start + "\n".join((_HEADING, *EXCLUDED)) + "\n").encode())
    return True


def _linked(top: Path, pointer: Path) -> Repository | None:
    try:
        told = pointer.read_text("utf-8").strip()
        own = (top / told.removeprefix("gitdir:").strip()).resolve()
        shared = own / "commondir"
        common = (own / shared.read_text("utf-8").strip()).resolve() if shared.is_file() else own
    except (OSError, UnicodeDecodeError):
        return None
    return Repository(top, common.parent if common.name == ".git" else top, common)

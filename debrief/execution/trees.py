"""Trees of a repository as folders of plain files, to run commands in.

They are made from git's objects alone: no hook, filter or driver of the repository runs. A
submodule is an empty folder, and a file that Git LFS keeps apart is its pointer: a check that needs
either fails on both trees, and so says nothing.
"""

from __future__ import annotations

import os
from pathlib import Path

from debrief.git import scratch_into
from debrief.git.scratch import LINK


def lay_out(tree: str, clone: Path, store: Path, folder: Path) -> tuple[str, ...]:
    """Write a tree's files to a folder; return those that are left out, as a partial clone may
    lack large ones.

    A symbolic link that leads out of the folder becomes a file with its target's name, as git
    itself makes of links where there are none.

    Args:
        tree: id of a tree or a commit.
        clone: the repository that it is of.
        store: where ``rebuild`` put what it made.
        folder: is made; must be empty where it is there.

    Raises:
        InputError: the tree is not known, or a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    top = folder.resolve()
    with scratch_into(clone.resolve(), store.resolve()) as scratch:
        entries = scratch.entries(tree)
        gone = scratch.missing_from(entries)
        present = entries.keys() - set(gone)
        links = [path for path in present if entries[path].mode == LINK]
        here = scratch.tree_with(tree, dict.fromkeys(gone)) if gone else tree
        scratch.read_tree(here, scratch.git_dir / "laid-out", top)
    # All are looked at before one goes: a link may lead through another one.
    leading = [link for path in links if not _is_inside(link := top / os.fsdecode(path), top)]
    for link in leading:
        target = link.readlink()
        link.unlink()
        link.write_bytes(os.fsencode(target))
    return tuple(os.fsdecode(path) for path in gone)


def _is_inside(link: Path, top: Path) -> bool:
    try:
        return not link.readlink().is_absolute() and link.resolve().is_relative_to(top)
    except (OSError, RuntimeError):  # links that lead to each other
        return False

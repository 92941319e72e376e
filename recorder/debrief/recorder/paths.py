"""Paths that a record may name."""

from __future__ import annotations

import re

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

"""Which files lie below a folder, and how they begin."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

HEAD = 16_384
"""Bytes of a file's beginning; more where its first line is longer."""
_LONGEST_HEAD = 1 << 20

_SUFFIXES = (".jsonl", ".json")
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class FileStamp(Struct, frozen=True, gc=False):
    """A file as a listing shows it: unchanged as long as all three fields are the same."""

    path: str
    size: int
    """Bytes."""
    mtime_ns: int


class Unreachable(Struct, frozen=True, gc=False):
    """A folder or file that a walk could not get at."""

    path: str
    reason: str


class Walk(Struct, frozen=True):
    """What lies below a folder: JSON and JSON-lines files, sorted by path."""

    files: tuple[FileStamp, ...]
    unreachable: tuple[Unreachable, ...] = ()
    sources: Mapping[str, str] = {}
    """The source of each file that did not change since it was last read; empty text for a file
    that no reader claims."""

    def paths(self, suffixes: str | tuple[str, ...], source: str) -> list[str]:
        """Return the sorted paths with these suffixes that are not known to be of other sources."""
        return [
            file.path
            for file in self.files
            if file.path.endswith(suffixes) and self.sources.get(file.path, source) == source
        ]


def walk(folder: Path) -> Walk:
    """List the files below ``folder``, or ``folder`` itself when it is a file.

    Symbolic links are followed after plain folders; a folder or file that was listed under another
    name is skipped, so loops end. So are folders without sessions (``.git``, ``node_modules`` …).
    """
    top = str(folder)
    files: list[FileStamp] = []
    unreachable: list[Unreachable] = []
    seen: set[tuple[int, int]] = set()

    def is_new(status: os.stat_result) -> bool:
        known = len(seen)
        seen.add((status.st_dev, status.st_ino))
        return len(seen) > known

    folders, links = [top], list[str]()
    while folders or links:
        at = folders.pop() if folders else links.pop()
        try:
            status = os.stat(at)  # noqa: PTH116 - a plain path, thousands of times
            if stat.S_ISREG(status.st_mode):
                return Walk((FileStamp(at, status.st_size, status.st_mtime_ns),))
            if not is_new(status):
                continue
            with os.scandir(at) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            missing = at == top and isinstance(error, FileNotFoundError)
            reason = "there is no such folder" if missing else reason_of(error)
            unreachable.append(Unreachable(shown(at), reason))
            continue
        for entry in listed:
            path, is_transcript = entry.path, entry.name.endswith(_SUFFIXES)
            try:
                if entry.is_dir():
                    if entry.name not in _SKIPPED:
                        (links if entry.is_symlink() else folders).append(path)
                    continue
                if not is_transcript:
                    continue
                status = entry.stat()
            except OSError as error:
                if is_transcript:
                    unreachable.append(Unreachable(shown(path), reason_of(error)))
                continue
            if shown(path) != path:
                reason = "its name is not UTF-8; rename it to have it read"
                unreachable.append(Unreachable(shown(path), reason))
            elif stat.S_ISREG(status.st_mode) and is_new(status):
                files.append(FileStamp(path, status.st_size, status.st_mtime_ns))
    files.sort(key=lambda file: file.path)
    return Walk(tuple(files), tuple(sorted(unreachable, key=lambda each: each.path)))


def head_of(path: str) -> bytes:
    """Return a file's beginning: 16 KB, or its first line up to 1 MB when that is longer.

    Empty when it cannot be read, which a scan reports itself.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - thousands of files a scan
            head = file.read(HEAD)
            while len(head) < _LONGEST_HEAD and b"\n" not in head:
                more = file.read(_LONGEST_HEAD - len(head))
                if not more:
                    break
                head += more
    except OSError:
        return b""
    return head


def shown(path: str) -> str:
    """Return ``path`` as text that can be stored, whatever bytes the name holds."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def reason_of(error: OSError) -> str:
    """Return in words why a file cannot be read."""
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return shown(error.strerror or str(error)).lower()

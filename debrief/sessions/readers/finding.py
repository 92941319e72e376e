"""Which files lie below a folder, and how they begin: looked at once for all readers.

A scan asks every reader for its transcripts below the same folders. Inside ``looking_once()``
no folder is walked again, and no file is opened by a reader that it is known not to belong to.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from msgspec import Struct

HEAD = 16_384
"""Bytes of a file's beginning; more where its first line is longer."""
_LONGEST_HEAD = 1 << 20

_SUFFIXES = (".jsonl", ".json")
_PASSED_OVER = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class FoundFile(Struct, frozen=True, gc=False):
    """A file as a folder's listing shows it."""

    path: str
    size: int
    mtime_ns: int


class Unreachable(Struct, frozen=True, gc=False):
    """A folder or file that a walk could not get at."""

    path: str
    reason: str


class Walk(Struct, frozen=True):
    """What lies below a folder: JSON and JSON-lines files, sorted by path."""

    files: tuple[FoundFile, ...]
    unreachable: tuple[Unreachable, ...] = ()


class _Looks(Struct, frozen=True):
    walks: Mapping[str, Walk]
    settled: Mapping[str, str]


_looks: ContextVar[_Looks] = ContextVar("looks", default=_Looks({}, {}))  # noqa: B039 - frozen


@contextmanager
def looking_once(walks: Mapping[str, Walk], settled: Mapping[str, str]) -> Iterator[None]:
    """Let readers know until the block ends what is known of the files already.

    Args:
        walks: by folder.
        settled: the source of each file that has not changed since it was last looked at; empty
            text for a file that no reader claims.
    """
    token = _looks.set(_Looks(walks, settled))
    try:
        yield
    finally:
        _looks.reset(token)


def source_of(path: str) -> str | None:
    """Return the source that a file is known to be of, empty for none; None when not known."""
    return _looks.get().settled.get(path)


def files_below(
    folder: Path, suffixes: str | tuple[str, ...], source: str | None = None
) -> list[str]:
    """Return the paths of files below ``folder`` that may be of ``source``, sorted.

    Args:
        folder: to walk at any depth.
        suffixes: that the names end in.
        source: files that are known to be of another one are left out; None keeps them.
    """
    settled = _looks.get().settled
    return [
        file.path
        for file in walk(folder).files
        if file.path.endswith(suffixes)
        and (source is None or settled.get(file.path, source) == source)
    ]


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


def walk(folder: Path) -> Walk:
    """List the files below ``folder``, or ``folder`` itself when it is a file.

    Symbolic links are followed; a folder or file that was met before under another name is not
    met again, so loops end. Folders that hold no sessions of anyone (``.git``,
    ``node_modules`` …) are passed over.
    """
    known = _looks.get().walks.get(str(folder))
    return _walk(str(folder)) if known is None else known


def _walk(top: str) -> Walk:
    files: list[FoundFile] = []
    unreachable: list[Unreachable] = []
    seen: set[tuple[int, int]] = set()

    linked: set[str] = set()

    def meet(status: os.stat_result) -> bool:
        identity = (status.st_dev, status.st_ino)
        if identity in seen:
            return False
        seen.add(identity)
        return True

    try:
        status = os.stat(top)  # noqa: PTH116 - a plain path, thousands of times
    except OSError as error:
        reason = "there is no such folder" if isinstance(error, FileNotFoundError) else ""
        return Walk((), (Unreachable(shown(top), reason or _why(error)),))
    if stat.S_ISREG(status.st_mode):
        return Walk((FoundFile(top, status.st_size, status.st_mtime_ns),))
    meet(status)
    folders, links = [top], list[str]()
    while folders or links:
        at = folders.pop() if folders else links.pop()
        try:
            if at in linked and not meet(os.stat(at)):  # noqa: PTH116
                continue
            with os.scandir(at) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            unreachable.append(Unreachable(shown(at), _why(error)))
            continue
        for entry in listed:
            path, is_link = entry.path, entry.is_symlink()
            if not is_link and not entry.is_dir() and not path.endswith(_SUFFIXES):
                continue
            try:
                status = entry.stat()
            except OSError as error:
                if path.endswith(_SUFFIXES):
                    unreachable.append(Unreachable(shown(path), _why(error)))
                continue
            if stat.S_ISDIR(status.st_mode):
                if entry.name in _PASSED_OVER:
                    continue
                if is_link:
                    linked.add(path)
                    links.append(path)
                elif meet(status):
                    folders.append(path)
            elif stat.S_ISREG(status.st_mode) and path.endswith(_SUFFIXES):
                if not _is_text(path):
                    reason = "its name is not UTF-8; rename it to have it read"
                    unreachable.append(Unreachable(shown(path), reason))
                elif meet(status):
                    files.append(FoundFile(path, status.st_size, status.st_mtime_ns))
    files.sort(key=lambda file: file.path)
    return Walk(tuple(files), tuple(sorted(unreachable, key=lambda each: each.path)))


def shown(path: str) -> str:
    """Return ``path`` as text that can be stored, whatever bytes the name holds."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _why(error: OSError) -> str:
    if isinstance(error, PermissionError):
        return "no permission to read it"
    return (error.strerror or str(error)).lower()

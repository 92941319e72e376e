"""Files of transcripts: which lie below a folder, how they begin, and what is in compressed ones.

Codex compresses old rollouts (``.jsonl.zst``). A compressed file is read as far as it goes: what
stands before a cut or a fault is had, and the reason for the end is kept.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import zstandard
from msgspec import Struct

from debrief.sessions.model import Name, Problem

SUFFIX = ".zst"
"""Of the names of compressed files."""
_PIECE = 1 << 9
"""Bytes decompressed at once: they may hold 30,000 times as many. A fault in them costs no more."""
_BLOCK = 1 << 16
_SMALL = 1 << 26
_MOST_TIMES = 200


class Disk(io.FileIO):
    """A plain file; opening and reading raise ``OSError`` as usual."""

    fault = ""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._sha = hashlib.sha256()
        self.taken = 0
        """Bytes that were read so far, as they lie on the disk."""

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of the bytes that were read so far, as they lie on the disk."""
        return self._sha.hexdigest()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; none at the end."""
        block = super().read(-1 if size is None else size) or b""
        self._sha.update(block)
        self.taken += len(block)
        return block


class Decompressed(io.RawIOBase):
    """What a ``.zst`` file holds. Opening raises ``OSError`` as usual, reading raises nothing.

    Memory is bounded by what is asked for. A file that holds more than 200 times its size, and
    more than 64 MB, is read that far: rollouts hold 3 to 30 times theirs.
    """

    def __init__(self, path: str) -> None:
        self._disk = Disk(path)
        self._frame = _new_frame()
        self._is_within = False
        self._held = bytearray()
        self._given = 0
        self._most = max(_SMALL, _MOST_TIMES * os.fstat(self._disk.fileno()).st_size)
        self.fault = ""
        """Why it ended before its end; empty where it did not."""

    @property
    def digest(self) -> str:
        """As ``Disk.digest``."""
        return self._disk.digest

    @property
    def taken(self) -> int:
        """As ``Disk.taken``."""
        return self._disk.taken

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill a buffer with the next bytes, and return how many they are."""
        block = self.read(len(buffer))
        buffer[: len(block)] = block
        return len(block)

    def close(self) -> None:
        """Close the file."""
        self._disk.close()
        super().close()

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the next bytes; none at the end."""
        size = self._most if size is None or size < 0 else size
        while len(self._held) < size and not self.fault:
            if block := self._disk.read(_PIECE):
                self._decompress(block)
            else:
                if self._is_within:
                    self.fault = (
                        "the compressed file is cut short; what stands before the cut is read"
                    )
                break
        block = bytes(self._held[:size])
        del self._held[:size]
        self._given += len(block)
        if self._given > self._most:
            times = f"more than {_MOST_TIMES} times its size"
            self.fault = f"it holds {times}; {self._given / 1e6:.0f} MB of that are read"
            self._held.clear()
        return block

    def _decompress(self, data: bytes) -> None:
        """Add what a piece of the file holds to what can be read; one frame may follow another."""
        while data:
            try:
                self._held += self._frame.decompress(data)
            except zstandard.ZstdError as error:
                self.fault = f"its compression is damaged; what stands before is read ({error})"
                while self._disk.read(_BLOCK):  # the digest is of all of it
                    pass
                return
            self._is_within, data = not self._frame.eof, self._frame.unused_data
            if not self._is_within:
                self._frame = _new_frame()


def opened(path: str) -> Disk | Decompressed:
    """Open a file to be read in blocks, decompressed where its name says that it is compressed.

    Raises:
        OSError: it cannot be opened.
    """
    return Decompressed(path) if path.endswith(SUFFIX) else Disk(path)


def _new_frame() -> zstandard.ZstdDecompressionObj:
    return zstandard.ZstdDecompressor().decompressobj()


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD = 16_384
"""Bytes of a file's beginning; more where its first line is longer."""
_LONGEST_HEAD = 1 << 20
DATABASES = (".db", ".db-wal", ".vscdb", ".vscdb-wal")
"""SQLite databases of sessions, and their logs."""
_SUFFIXES = (".jsonl", f".jsonl{SUFFIX}", ".json", ".traj", *DATABASES)
_OTHER_KINDS = re.compile(
    r"\.(?:db3|sqlite3?|zst|gz|tgz|bz2|xz|zip|tar|7z|parquet|pb|ndjson|ya?ml|md|txt|log|csv"
    r"|cast)\Z"
)
"""Of the files that may hold what somebody wants to know of a session: databases, archives, text.
Programs, pictures and locks do not."""
_PLACES = ("tool-results/*.txt", ".specstory/history/*.md")
"""Files that are known by their folders, as globs."""
_REPOSITORY = {"HEAD", "objects", "refs"}
"""What is in a Git repository's own folder, which may have any name."""
_SKIPPED = frozenset({".git", "node_modules", ".venv", "__pycache__"})


class FileStamp(Struct, frozen=True, gc=False):
    """A file as a listing shows it: unchanged as long as all three fields are the same."""

    path: Name
    size: int
    """Bytes."""
    mtime_ns: int


class Walk(Struct, frozen=True):
    """What lies below a folder: JSON and JSON-lines files and databases, sorted by path."""

    files: tuple[FileStamp, ...]
    unreachable: tuple[Problem, ...] = ()
    """Folders and files that the walk could not get at."""
    others: Mapping[str, tuple[str, ...]] = {}
    """By glob, such as ``*.md``, the first two of the files that no reader looks at."""
    folder: str = ""
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
    unreachable: dict[str, str] = {}
    others: dict[str, tuple[str, ...]] = {}
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
            if {entry.name for entry in listed} >= _REPOSITORY:
                continue
        except OSError as error:
            missing = at == top and isinstance(error, FileNotFoundError)
            reason = "there is no such folder" if missing else reason_of(error)
            unreachable[shown(at)] = reason
            continue
        for entry in listed:
            path, is_transcript = entry.path, entry.name.endswith(_SUFFIXES)
            try:
                if entry.is_dir():
                    if entry.name not in _SKIPPED:
                        (links if entry.is_symlink() else folders).append(path)
                    continue
                if not is_transcript:
                    if suffix := _OTHER_KINDS.search(entry.name):
                        known = (glob for glob in _PLACES if fnmatchcase(path, f"*/{glob}"))
                        kind = next(known, f"*{suffix[0]}")
                        others[kind] = (*others.get(kind, ()), shown(path))[:2]
                    continue
                status = entry.stat()
            except OSError as error:
                if is_transcript:
                    unreachable[shown(path)] = reason_of(error)
                continue
            if shown(path) != path:
                unreachable[shown(path)] = "its name is not UTF-8; rename it to have it read"
            elif stat.S_ISREG(status.st_mode) and is_new(status):
                files.append(FileStamp(path, status.st_size, status.st_mtime_ns))
    files.sort(key=lambda file: file.path)
    problems = (Problem(path=path, line=0, reason=why) for path, why in sorted(unreachable.items()))
    return Walk(tuple(files), tuple(problems), others=others, folder=top)


def head_of(path: str) -> bytes:
    """Return a file's beginning without a byte order mark: 16 KB, or its first line up to 1 MB.

    Empty when it cannot be read, which a scan reports itself.
    """
    try:
        with Decompressed(path) if path.endswith(SUFFIX) else io.FileIO(path) as file:
            head = file.read(HEAD) or b""
            if head.startswith(BYTE_ORDER_MARK):
                head = head.removeprefix(BYTE_ORDER_MARK) + (file.read(len(BYTE_ORDER_MARK)) or b"")
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

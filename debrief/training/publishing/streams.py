"""Lines from and to files.

Large reads and checksums leave the interpreter to others: a thread does them a block at a time,
while lines are converted. One block is under way and one is at hand, so memory does not grow with
the file. What comes of a line is written by whoever made it, while it is still in the processor's
cache.
"""

from __future__ import annotations

import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import IO, TypeAlias
from zlib import crc32

from debrief.training.publishing.conversations import Line
from debrief.training.store import PlacedLine

READ_AT_ONCE = 4_000_000
WRITTEN_AT_ONCE = 2_000_000
CHECKED_AT_ONCE = 1_000_000
"""Bytes."""
_LOOKED_AT = 32_000_000
"""Bytes of a file that may be in our memory."""
_HAND_OVER = 0.0001
"""Seconds after which a thread lets another go on; the usual 5 ms are as long as a block takes."""
_MOST_BUFFERS = 1_000
"""Parts of lines in one call of the system, which takes a thousand."""

BytesAt: TypeAlias = Callable[[int, int], Line]
"""Gives the bytes of a file from an offset on, so many; fewer at its end."""


@contextmanager
def reader() -> Iterator[Executor]:
    """Yield who reads ahead: it needs the interpreter for a moment now and then, and soon."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(min(usual, _HAND_OVER))
    try:
        with ThreadPoolExecutor(max_workers=1) as executor:
            yield executor
    finally:
        sys.setswitchinterval(usual)


class ReadsAhead:
    """The lines of a stored file, in order.

    Args:
        at: gives the file's bytes from an offset on; nothing else may call it meanwhile.
        rows: where its lines are, one after the other from the beginning on.
        worker: reads.
        block: bytes that are read at once, at least.
    """

    def __init__(
        self,
        at: BytesAt,
        rows: Iterable[PlacedLine],
        worker: Executor,
        block: int = READ_AT_ONCE,
    ) -> None:
        self.checksum = 0
        """CRC-32 of what was read."""
        self.end = 0
        """Bytes that were read."""
        self._at = at
        self._rows = iter(rows)
        self._worker = worker
        self._block = block

    def __iter__(self) -> Iterator[tuple[PlacedLine, memoryview]]:
        """Yield each row with its line, in order."""
        following = self._next()
        while following is not None:
            rows, block_of = following
            block = memoryview(block_of())
            following = self._next()
            start = 0
            for row in rows:
                yield row, block[start : start + row.size]
                start += row.size

    def _next(self) -> tuple[list[PlacedLine], Callable[[], Line]] | None:
        rows: list[PlacedLine] = []
        size = 0
        for row in self._rows:
            rows.append(row)
            size += row.size
            if size >= self._block:
                break
        if not rows:
            return None
        if size < self._block:
            return rows, lambda: self._read(size)
        return rows, self._worker.submit(self._read, size).result

    def _read(self, size: int) -> Line:
        block = self._at(self.end, size)
        self.checksum = crc32(block, self.checksum)
        self.end += size
        return block


class WritesTogether:
    """A file that lines are added to, some at a time: while they are at hand, and without putting
    them together first.

    Args:
        file: of the system; nothing else may write to it before it is closed here.
        block: bytes that are written at once, at least.
    """

    def __init__(self, file: IO[bytes], block: int = WRITTEN_AT_ONCE) -> None:
        self._handle = file.fileno()
        self._block = block
        self._parts: list[Line] = []
        self._held = 0

    def add(self, parts: Sequence[Line]) -> int:
        """Add a line in parts, and return its size in bytes.

        Raises:
            OSError: it, or one before it, could not be written.
        """
        size = sum(map(len, parts))
        if len(self._parts) + len(parts) > _MOST_BUFFERS:
            self.close()
        self._parts += parts
        self._held += size
        if self._held >= self._block:
            self.close()
        return size

    def close(self) -> None:
        """Write what is left.

        Raises:
            OSError: something could not be written.
        """
        parts, held = self._parts, self._held
        self._parts, self._held = [], 0
        while parts:
            written = os.writev(self._handle, parts[:_MOST_BUFFERS])
            if written == held:
                return
            held -= written
            parts = _rest(parts, written)


def _rest(parts: Sequence[Line], written: int) -> list[Line]:
    done = 0
    while done < len(parts) and written >= len(parts[done]):
        written -= len(parts[done])
        done += 1
    if not written:
        return list(parts[done:])
    return [memoryview(parts[done])[written:], *parts[done + 1 :]]


@contextmanager
def lines_in(file: IO[bytes] | None) -> Iterator[BytesAt]:
    """Yield what gives the bytes of a file, asked for from its beginning to its end; of none,
    nothing. Those of a file of the system are looked at where they are."""
    if file is not None and _of_the_system(file):
        yield _Mapped(file) if os.fstat(file.fileno()).st_size else _nothing
    else:
        yield partial(_read, file) if file is not None else _nothing


@contextmanager
def lines_anywhere(file: IO[bytes] | None) -> Iterator[Anywhere]:
    """Yield what gives the bytes of a file, asked for in any order and by several threads; of
    none, nothing. What is no file of the system is first brought to this machine's disk.

    They are read rather than looked at where they are: a line from anywhere in a file is not at
    hand, and the system fetches it whole.
    """
    with ExitStack() as stack:
        if file is not None and not _of_the_system(file):
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy, READ_AT_ONCE)
            copy.flush()
            file = copy
        yield Anywhere(None if file is None else file.fileno())


class Anywhere:
    """The bytes of a file of the system, asked for in any order and by several threads.

    Args:
        handle: the file's; None for none.
    """

    def __init__(self, handle: int | None) -> None:
        self._handle = handle

    def __call__(self, offset: int, size: int) -> bytes:
        """Return the bytes from an offset on, so many; fewer at the end."""
        return b"" if self._handle is None else os.pread(self._handle, size, offset)

    def checksum(self) -> int:
        """Return the CRC-32 of all that there is.

        All is read into one place: memory that comes and goes holds up other threads.
        """
        if self._handle is None:
            return 0
        block = memoryview(bytearray(CHECKED_AT_ONCE))
        checksum = offset = 0
        while size := os.preadv(self._handle, [block], offset):
            checksum = crc32(block[:size], checksum)
            offset += size
        return checksum


class _Mapped:
    """A file's bytes where the system has them; what was looked at does not count as ours for
    long, however large the file is."""

    def __init__(self, file: IO[bytes]) -> None:
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._view = memoryview(self._map)
        self._given = 0

    def __call__(self, offset: int, size: int) -> memoryview:
        self._given += size
        if self._given > _LOOKED_AT and hasattr(mmap, "MADV_DONTNEED"):
            self._given = 0
            self._map.madvise(mmap.MADV_DONTNEED)
        return self._view[offset : offset + size]


def _nothing(offset: int, size: int) -> bytes:
    return b""


def _read(file: IO[bytes], offset: int, size: int) -> bytes:
    if file.tell() != offset:
        file.seek(offset)
    return file.read(size)


def _of_the_system(file: IO[bytes]) -> bool:
    """Return whether the system has a file of its own behind it."""
    try:
        file.fileno()
    except (OSError, ValueError, AttributeError):
        return False
    return True

"""Lines from and to files while others are worked on.

Large reads, checksums and writes leave the interpreter to others: a worker does them a block at
a time, while lines are converted. One block is under way and one is at hand, so memory does not
grow with the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from typing import IO
from zlib import crc32

from debrief.training.publishing.conversations import Line
from debrief.training.store import LineRow

BLOCK = 4_000_000
"""Bytes."""
_MOST_BUFFERS = 512
"""Lines in one call of the system, which takes a thousand."""


class ReadsAhead:
    """The lines of a stored file, in order.

    Args:
        file: at its beginning; nothing else may read it meanwhile.
        rows: where its lines are, one after the other.
        worker: reads.
        block: bytes that are read at once, at least.
    """

    def __init__(
        self, file: IO[bytes], rows: Iterable[LineRow], worker: Executor, block: int = BLOCK
    ) -> None:
        self.checksum = 0
        """CRC-32 of what was read."""
        self._file = file
        self._rows = iter(rows)
        self._worker = worker
        self._block = block

    def __iter__(self) -> Iterator[tuple[LineRow, memoryview]]:
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

    def _next(self) -> tuple[list[LineRow], Callable[[], bytes]] | None:
        rows: list[LineRow] = []
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

    def _read(self, size: int) -> bytes:
        block = self._file.read(size)
        self.checksum = crc32(block, self.checksum)
        return block


class WritesBehind:
    """A file that lines are added to.

    Args:
        file: of the system; nothing else may write to it before it is closed here.
        worker: writes.
        block: bytes that are written at once, at least.
    """

    def __init__(self, file: IO[bytes], worker: Executor, block: int = BLOCK) -> None:
        self._handle = file.fileno()
        self._worker = worker
        self._block = block
        self._lines: list[Line] = []
        self._held = 0
        self._under_way: Future[None] | None = None

    def add(self, line: Line) -> None:
        """Add a line.

        Raises:
            OSError: one before it could not be written.
        """
        self._lines.append(line)
        self._held += len(line)
        if self._held >= self._block:
            self._wait()
            self._under_way = self._worker.submit(_write, self._handle, self._lines)
            self._lines, self._held = [], 0

    def close(self) -> None:
        """Write what is left.

        Raises:
            OSError: something could not be written.
        """
        self._wait()
        _write(self._handle, self._lines)
        self._lines, self._held = [], 0

    def _wait(self) -> None:
        if self._under_way is not None:
            self._under_way.result()
            self._under_way = None


def _write(handle: int, lines: list[Line]) -> None:
    """Write lines to a file without putting them together first."""
    for first in range(0, len(lines), _MOST_BUFFERS):
        left: list[Line] = [*lines[first : first + _MOST_BUFFERS]]
        while left:
            written = os.writev(handle, left)
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if left:
                left[0] = memoryview(left[0])[written:]

"""Lines of a stored file in any order.

Lines from all over a file come slowly to the processor. So a worker brings those that are wanted
next together, some megabytes at a time, in one call that leaves the interpreter to others.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from typing import IO

from debrief.training.publishing.streams import READ_AT_ONCE, Mapped, of_the_system


@contextmanager
def mapped(file: IO[bytes] | None) -> Iterator[Mapped | None]:
    """Yield a file's bytes where the system has them; None when there are none.

    What is no file of the system is first brought to this machine's disk.
    """
    with ExitStack() as stack:
        if file is not None and not of_the_system(file):
            copy = stack.enter_context(tempfile.TemporaryFile())
            shutil.copyfileobj(file, copy, READ_AT_ONCE)
            copy.flush()
            file = copy
        yield Mapped.of(file)


class Picks:
    """Lines of a stored file, brought together in the order in which they are wanted.

    Args:
        file: the file's bytes.
        sizes: of its lines, in bytes, one after the other from the beginning on; they must all
            be there.
        worker: brings them together.
        block: bytes that are brought together at once, at least.
    """

    def __init__(
        self,
        file: Mapped,
        sizes: Sequence[int],
        worker: Executor,
        block: int = READ_AT_ONCE,
    ) -> None:
        import pyarrow as pa

        ends = pa.array(accumulate(sizes, initial=0), pa.int64())
        buffers = [None, ends.buffers()[1], pa.py_buffer(file.view)]
        self._lines = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(sizes), buffers)
        self._file = file
        self._sizes = sizes
        self._worker = worker
        self._block = block

    def lines(self, numbers: Sequence[int]) -> Iterator[memoryview]:
        """Yield lines by number."""
        blocks = self._blocks(numbers)
        following = next(blocks, None)
        while following is not None:
            block, picked = following
            data = picked.result()
            following = next(blocks, None)
            start = 0
            for number in block:
                end = start + self._sizes[number]
                yield data[start:end]
                start = end

    def _blocks(self, numbers: Sequence[int]) -> Iterator[tuple[list[int], Future[memoryview]]]:
        block: list[int] = []
        size = 0
        for number in numbers:
            block.append(number)
            size += self._sizes[number]
            if size >= self._block:
                yield block, self._worker.submit(self._picked, block, size)
                block, size = [], 0
        if block:
            yield block, self._worker.submit(self._picked, block, size)

    def _picked(self, numbers: list[int], size: int) -> memoryview:
        import pyarrow as pa

        self._file.will_look_at(size)
        picked = self._lines.take(pa.array(numbers, pa.int64()))
        return memoryview(picked.buffers()[2])

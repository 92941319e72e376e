from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.training.publishing.streams import ReadsAhead, WritesBehind
from debrief.training.store import LineRow


def row(size: int, offset: int) -> LineRow:
    return LineRow(
        session_id="s",
        window=1,
        split="train",
        quality=0.5,
        offset=offset,
        size=size,
        messages=1,
        tokens=1,
        digest="",
        made_from="",
        conversation="",
    )


LINES = st.lists(st.binary(min_size=1, max_size=40), max_size=60)


@given(LINES, st.integers(1, 200))
@settings(deadline=None)
def test_lines_are_written_whole_and_in_order_whatever_the_block(
    lines: list[bytes], block: int
) -> None:
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(1) as worker:
        sink = WritesBehind(file, worker, block)
        for line in lines:
            sink.add(line)
        sink.close()
        file.seek(0)
        assert file.read() == b"".join(lines)


@given(LINES, st.integers(1, 200))
@settings(deadline=None)
def test_lines_are_read_as_they_were_written_with_their_checksum(
    lines: list[bytes], block: int
) -> None:
    data = b"".join(lines)
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(1) as worker:
        file.write(data)
        file.seek(0)
        rows = [row(len(line), sum(map(len, lines[:n]))) for n, line in enumerate(lines)]
        ahead = ReadsAhead(file, rows, worker, block)
        read = [(row, bytes(line)) for row, line in ahead]
        assert read == list(zip(rows, lines, strict=True))
        assert ahead.checksum == crc32(data)


def test_more_lines_than_the_system_takes_at_once_are_written(tmp_path: Path) -> None:
    with (tmp_path / "many").open("wb") as file, ThreadPoolExecutor(1) as worker:
        sink = WritesBehind(file, worker)
        for number in range(3_000):
            sink.add(b"%d\n" % number)
        sink.close()
    assert (tmp_path / "many").read_bytes().split() == [b"%d" % n for n in range(3_000)]


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no such device here")
    with full.open("wb", buffering=0) as file, ThreadPoolExecutor(1) as worker:
        sink = WritesBehind(file, worker, block=1)
        sink.add(b"one")
        with pytest.raises(OSError, match="space"):
            sink.add(b"two")

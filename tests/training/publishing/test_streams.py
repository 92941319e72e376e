from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.training.publishing.streams import (
    CHECKED_AT_ONCE,
    ReadsAhead,
    WritesTogether,
    lines_anywhere,
    lines_in,
)
from debrief.training.store import PlacedLine


def row(size: int, offset: int) -> PlacedLine:
    return PlacedLine(
        session_id="s",
        window=1,
        split="train",
        quality=0.5,
        offset=offset,
        size=size,
    )


LINES = st.lists(st.binary(min_size=1, max_size=40), max_size=60)


@given(LINES, st.integers(1, 200))
@settings(deadline=None)
def test_lines_are_written_whole_and_in_order_whatever_the_block(
    lines: list[bytes], block: int
) -> None:
    with tempfile.TemporaryFile() as file:
        sink = WritesTogether(file, block)
        sizes = [sink.add([line[:3], line[3:]]) for line in lines]
        sink.close()
        file.seek(0)
        assert file.read() == b"".join(lines)
        assert sizes == list(map(len, lines))


@given(LINES, st.integers(1, 200))
@settings(deadline=None)
def test_lines_are_read_as_they_were_written_with_their_checksum(
    lines: list[bytes], block: int
) -> None:
    data = b"".join(lines)
    with BytesIO(data) as file, ThreadPoolExecutor(1) as worker, lines_in(file) as at:
        rows = [row(len(line), sum(map(len, lines[:n]))) for n, line in enumerate(lines)]
        ahead = ReadsAhead(at, rows, worker, block)
        read = [(row, bytes(line)) for row, line in ahead]
        assert read == list(zip(rows, lines, strict=True))
        assert (ahead.checksum, ahead.end) == (crc32(data), len(data))


def test_more_lines_than_the_system_takes_at_once_are_written(tmp_path: Path) -> None:
    with (tmp_path / "many").open("wb") as file:
        sink = WritesTogether(file)
        for number in range(3_000):
            sink.add([b"%d" % number, b"\n"])
        sink.close()
    assert (tmp_path / "many").read_bytes().split() == [b"%d" % n for n in range(3_000)]


def test_a_line_in_more_parts_than_the_system_takes_at_once_is_written(tmp_path: Path) -> None:
    with (tmp_path / "parts").open("wb") as file:
        sink = WritesTogether(file)
        assert sink.add([b"%d " % number for number in range(3_000)]) == 13_890
        sink.close()
    assert (tmp_path / "parts").read_bytes().split() == [b"%d" % n for n in range(3_000)]


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no such device here")
    with full.open("wb", buffering=0) as file:
        sink = WritesTogether(file, block=1)
        with pytest.raises(OSError, match="space"):
            sink.add([b"one"])


@pytest.mark.parametrize("kind", ["of the system", "in memory"])
@pytest.mark.parametrize("size", [0, 10_240, 2 * CHECKED_AT_ONCE + 512])
def test_any_place_of_a_file_is_given_in_any_order(kind: str, size: int, tmp_path: Path) -> None:
    data = bytes(range(256)) * (size // 256)
    (tmp_path / "data").write_bytes(data)
    with (
        (tmp_path / "data").open("rb") if kind == "of the system" else BytesIO(data) as file,
        lines_anywhere(file) as at,
    ):
        for offset, wanted in ((10_000, 240), (0, 1), (5_000, 4_096), (0, 10_240), (9, 0)):
            assert bytes(at(offset, wanted)) == data[offset : offset + wanted]
        assert at.checksum() == crc32(data)


def test_a_file_that_is_not_there_has_no_bytes() -> None:
    with lines_in(None) as in_order, lines_anywhere(None) as at:
        assert (in_order(0, 10), at(0, 10), at.checksum()) == (b"", b"", 0)

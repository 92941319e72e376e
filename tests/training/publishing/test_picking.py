from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from debrief.training.publishing.picking import Picks, mapped
from debrief.training.publishing.streams import checksum_of

LINES = st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=30)


@given(LINES, st.data(), st.integers(1, 200))
@settings(deadline=None)
def test_lines_come_in_the_order_in_which_they_are_wanted(
    lines: list[bytes], data: st.DataObject, block: int
) -> None:
    wanted = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=60))
    with tempfile.TemporaryFile() as file, ThreadPoolExecutor(1) as worker:
        file.write(b"".join(lines))
        file.flush()
        with mapped(file) as at:
            assert at is not None
            picks = Picks(at, [len(line) for line in lines], worker, block)
            picked = [bytes(line) for line in picks.lines(wanted)]
    assert picked == [lines[number] for number in wanted]


@pytest.mark.parametrize("kind", ["of the system", "in memory"])
def test_any_place_of_a_file_is_given_in_any_order(kind: str, tmp_path: Path) -> None:
    data = bytes(range(256)) * 40
    (tmp_path / "data").write_bytes(data)
    with (
        (tmp_path / "data").open("rb") if kind == "of the system" else BytesIO(data) as file,
        mapped(file) as at,
    ):
        assert at is not None
        for offset, wanted in ((10_000, 240), (0, 1), (5_000, 4_096), (0, 10_240), (9, 0)):
            assert bytes(at(offset, wanted)) == data[offset : offset + wanted]
        assert checksum_of(at) == crc32(data)


def test_more_than_is_kept_in_our_memory_is_given_all_the_same(tmp_path: Path) -> None:
    size, count = 1_000_003, 100
    (tmp_path / "large").write_bytes(b"".join(bytes([n]) * size for n in range(count)))
    wanted = [(n * 37) % count for n in range(count)]
    with (
        (tmp_path / "large").open("rb") as file,
        mapped(file) as at,
        ThreadPoolExecutor(1) as worker,
    ):
        assert at is not None
        lines = Picks(at, [size] * count, worker).lines(wanted)
        for number, line in zip(wanted, lines, strict=True):
            assert (line[0], line[-1], len(line)) == (number, number, size)


@pytest.mark.parametrize("kind", ["none", "empty", "empty in memory"])
def test_of_no_bytes_there_is_nothing_to_look_at(kind: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    empty = (tmp_path / "empty").open("rb") if kind == "empty" else BytesIO()
    with empty as file, mapped(None if kind == "none" else file) as at:
        assert at is None

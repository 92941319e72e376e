"""What a lake does the same in a folder and in an object store."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from debrief.lake import Lake
from tests.object_store import Bucket, bucket, object_store_server

__all__ = ["bucket", "object_store_server"]


class Thing(Struct, frozen=True):
    id: str
    text: str = ""


class ThingName(Struct, frozen=True):
    id: str


@pytest.fixture(params=["a folder", "a bucket"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "a folder":
        return str(tmp_path / "lake")
    found: Bucket = request.getfixturevalue("bucket")
    return found.url("lake")


@pytest.fixture(autouse=True)
def nothing_is_left_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    with monkeypatch.context() as told:
        told.setattr(tempfile, "tempdir", str(scratch))
        yield
    assert list(scratch.iterdir()) == []


def test_rows_come_back_and_the_same_rows_are_not_written_again(url: str) -> None:
    lake = Lake(url)
    rows = [Thing("a", "one"), Thing("b", "two")]
    assert lake.write("things", "w", rows, Thing, lambda: "made from this").changed
    assert not lake.write("things", "w", rows, Thing, lambda: "made from this").changed
    assert list(lake.read("things", "w", Thing)) == rows
    assert list(lake.read("things", "w", ThingName, only=("id", {"b"}))) == [ThingName("b")]
    stamp = lake.stamp("things", "w")
    assert stamp is not None
    assert (stamp.inputs, stamp.rows) == ("made from this", 2)
    assert not lake.write("things", "w", rows, Thing, lambda: "made from that").changed
    stamp = lake.stamp("things", "w")
    assert stamp is not None
    assert stamp.inputs == "made from that"


def test_what_is_not_there_is_nothing(url: str) -> None:
    lake = Lake(url)
    assert lake.partitions("things") == []
    assert lake.names("training") == []
    assert list(lake.read("things", "w", Thing)) == []
    assert lake.stamp("things", "w") is None
    assert lake.read_bytes("a.txt") is None
    assert lake.digest_of_file("a.txt") is None
    with lake.open_bytes("a.txt") as file:
        assert file is None
    lake.remove("a.txt")
    lake.write_bytes("a.txt", b"x")
    lake.remove("a.txt")
    assert lake.read_bytes("a.txt") is None


def test_what_another_worker_writes_is_seen_at_once(url: str) -> None:
    mine, others = Lake(url), Lake(url)
    assert mine.partitions("things") == []
    others.write("things", "w1", [Thing("a")], Thing)
    assert mine.partitions("things") == ["w1"]
    others.write("things", "w2", [Thing("b")], Thing)
    others.write_bytes("training/t/f.jsonl", b"{}\n")
    assert mine.partitions("things") == ["w1", "w2"]
    assert mine.names("training", ".jsonl") == ["training/t/f.jsonl"]
    others.write("things", "w1", [Thing("c")], Thing)
    assert list(mine.read("things", "w1", Thing)) == [Thing("c")]


def test_of_two_writers_of_a_partition_the_last_one_wins_whole(url: str) -> None:
    versions = {
        name: [Thing(f"{name}{number}", name * 50) for number in range(700)] for name in "xy"
    }
    start = threading.Barrier(3)

    def write(name: str) -> None:
        start.wait()
        for _ in range(3):
            Lake(url).write("things", "w", versions[name], Thing, lambda: name)

    writers = [threading.Thread(target=write, args=(name,)) for name in versions]
    for writer in writers:
        writer.start()
    start.wait()
    seen = [list(Lake(url).read("things", "w", Thing)) for _ in range(10)]
    for writer in writers:
        writer.join()
    assert all(rows in ([], *versions.values()) for rows in seen)
    stamp = Lake(url).stamp("things", "w")
    assert stamp is not None
    assert list(Lake(url).read("things", "w", Thing)) == versions[stamp.inputs]


def test_a_writer_that_fails_leaves_what_was_there(url: str) -> None:
    lake = Lake(url)
    lake.write("things", "w", [Thing("old")], Thing)
    lake.write_bytes("a.jsonl", b"old\n")

    def broken() -> Iterator[Thing]:
        yield Thing("new")
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError, match="the power went"):
        lake.write("things", "w", broken(), Thing)
    with pytest.raises(RuntimeError, match="again"):
        _fail_half_way(lake)
    with lake.create("a.jsonl") as unwanted:
        unwanted.file.write(b"new\n")
        unwanted.keep = False
    assert list(lake.read("things", "w", Thing)) == [Thing("old")]
    assert lake.read_bytes("a.jsonl") == b"old\n"
    assert (lake.partitions("things"), lake.names("things")) == (["w"], ["things/w.jsonl.zst"])


def _fail_half_way(lake: Lake) -> None:
    with lake.create("a.jsonl") as creation:
        creation.file.write(b"new\n")
        assert lake.read_bytes("a.jsonl") == b"old\n"
        raise RuntimeError("again")


def test_a_file_larger_than_one_request_is_read_in_parts(url: str) -> None:
    lake = Lake(url)
    block = bytes(range(256)) * 4096
    with lake.create("big.bin") as creation:
        for _ in range(3):
            creation.file.write(block)
        creation.file.write(b"end")
    assert creation.changed
    with lake.create("big.bin") as again:
        again.file.write(block * 3 + b"end")
    assert not again.changed
    with lake.create("big.bin") as other:
        other.file.write(block * 3 + b"END")
    assert other.changed
    with lake.open_bytes("big.bin") as file:
        assert file is not None
        file.seek(2 * len(block) + 17)
        assert file.read(4) == bytes([17, 18, 19, 20])
        file.seek(-3, 2)
        assert file.read() == b"END"
    assert lake.digest_of_file("big.bin") == hashlib.sha256(block * 3 + b"END").hexdigest()
    assert lake.read_bytes("big.bin") == block * 3 + b"END"


def test_a_partition_larger_than_one_request_is_read_in_parts(url: str) -> None:
    lake = Lake(url)
    rows = [
        Thing(str(number), hashlib.shake_128(str(number).encode()).hexdigest(2048))
        for number in range(1200)
    ]
    assert lake.write("things", "w", rows, Thing).changed
    assert list(lake.read("things", "w", Thing)) == rows
    assert [row.id for row in lake.read("things", "w", ThingName)] == [row.id for row in rows]
    assert not lake.write("things", "w", rows, Thing).changed


def test_an_empty_file_and_a_damaged_partition_are_what_they_are(url: str) -> None:
    lake = Lake(url)
    assert lake.write_bytes("empty.txt", b"").changed
    assert not lake.write_bytes("empty.txt", b"").changed
    assert lake.read_bytes("empty.txt") == b""
    lake.write_bytes("things/none.jsonl.zst", b"")
    lake.write_bytes("things/half.jsonl.zst", b"and no more")
    assert lake.stamp("things", "none") is None
    assert lake.stamp("things", "half") is None
    assert lake.write("things", "half", [Thing("a")], Thing).changed

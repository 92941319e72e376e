from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from debrief.errors import LakeError
from debrief.lake import Lake


class Part(Struct, frozen=True):
    text: str
    number: int | None = None


class Thing(Struct, frozen=True):
    id: str
    at: datetime
    kind: Literal["a", "b"]
    ratio: float | None
    parts: tuple[Part, ...] = ()
    names: tuple[str, ...] = ()
    good: bool = True


class ThingName(Struct, frozen=True):
    id: str


def thing(id_: str = "one", **fields: object) -> Thing:
    given = {"at": datetime(2026, 1, 5, tzinfo=UTC), "kind": "a", "ratio": None, **fields}
    return Thing(id=id_, **given)  # type: ignore[arg-type]


THINGS = st.builds(
    Thing,
    id=st.text(st.characters(codec="utf-8"), max_size=5),
    at=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),
    kind=st.sampled_from(["a", "b"]),
    ratio=st.none() | st.floats(allow_nan=False),
    parts=st.lists(
        st.builds(
            Part,
            st.text(st.characters(codec="utf-8"), max_size=5),
            st.none() | st.integers(-(2**63), 2**63 - 1),
        ),
        max_size=3,
    ).map(tuple),
    names=st.lists(st.text(st.characters(codec="utf-8"), max_size=3), max_size=3).map(tuple),
    good=st.booleans(),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(THINGS, max_size=6))
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Thing]
) -> None:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    lake.write("things", "2026-01-05", rows, Thing)
    assert list(lake.read("things", "2026-01-05", Thing)) == rows


def test_a_partition_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "nowhere"))
    assert list(lake.read("things", "2026-01-05", Thing)) == []
    assert lake.partitions("things") == []
    assert lake.stamp("things", "2026-01-05") is None


def test_writing_the_same_rows_again_leaves_the_file_alone(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    first = lake.write("things", "w", [thing()], Thing, lambda: "made from this")
    before = _identity(first.path)
    again = lake.write("things", "w", [thing()], Thing, lambda: "made from this")
    assert (first.changed, again.changed) == (True, False)
    assert _identity(first.path) == before


def _identity(path: str) -> tuple[int, int, int]:
    """What writing a file changes and reading it, which moves ``st_atime``, does not."""
    status = Path(path).stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def test_the_same_rows_made_from_something_else_are_stamped_anew_and_not_called_changed(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path))
    lake.write("things", "w", [thing()], Thing, lambda: "this")
    assert not lake.write("things", "w", [thing()], Thing, lambda: "that").changed
    stamp = lake.stamp("things", "w")
    assert stamp is not None
    assert stamp.inputs == "that"


def test_a_struct_with_fewer_fields_reads_only_those_columns(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write("things", "w", [thing("a"), thing("b")], Thing)
    assert list(lake.read("things", "w", ThingName)) == [ThingName("a"), ThingName("b")]


def test_only_the_wanted_rows_are_decoded(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write("things", "w", (thing(str(n)) for n in range(200)), Thing)
    rows = lake.read("things", "w", ThingName, only=("id", {"7", "199", "none"}))
    assert [row.id for row in rows] == ["7", "199"]


def test_a_writer_that_fails_half_way_leaves_the_old_rows_and_no_rubbish(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write("things", "w", [thing("old")], Thing)

    def broken() -> object:
        yield thing("new")
        raise RuntimeError("the power went")

    with pytest.raises(RuntimeError, match="the power went"):
        lake.write("things", "w", broken(), Thing)  # type: ignore[arg-type]
    assert [row.id for row in lake.read("things", "w", Thing)] == ["old"]
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["w.parquet"]


def test_a_partition_cut_short_counts_as_not_there_and_is_written_again(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    path = Path(lake.write("things", "w", [thing()], Thing).path)
    path.write_bytes(path.read_bytes()[:40])
    assert lake.stamp("things", "w") is None
    assert lake.write("things", "w", [thing()], Thing).changed
    assert list(lake.read("things", "w", Thing)) == [thing()]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", "a/../../b"])
def test_no_name_leads_out_of_the_lake(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a name inside the lake"):
        Lake(str(tmp_path)).path(name)


def test_a_lake_in_an_object_store_works_the_same(tmp_path: Path) -> None:
    lake = Lake("memory://bucket/lake")
    assert lake.write("things", "w", [thing()], Thing).changed
    assert not lake.write("things", "w", [thing()], Thing).changed
    assert list(lake.read("things", "w", Thing)) == [thing()]
    lake.write_bytes("training/t/f.jsonl", b"{}\n")
    assert lake.names("training", ".jsonl") == ["training/t/f.jsonl"]
    assert lake.partitions("things") == ["w"]


def test_a_text_is_written_once_and_read_back(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    assert lake.write_bytes("training/t/f.jsonl", b"{}\n").changed
    assert not lake.write_bytes("training/t/f.jsonl", b"{}\n").changed
    assert lake.read_bytes("training/t/f.jsonl") == b"{}\n"
    lake.remove("training/t/f.jsonl")
    assert lake.read_bytes("training/t/f.jsonl") is None


def test_a_file_is_written_piece_by_piece_and_seen_only_when_it_is_whole(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    with lake.create("a/b.jsonl") as creation:
        creation.file.write(b"one\n")
        assert lake.read_bytes("a/b.jsonl") is None
        creation.file.write(b"two\n")
    assert creation.changed
    assert lake.read_bytes("a/b.jsonl") == b"one\ntwo\n"
    with lake.create("a/b.jsonl") as again:
        again.file.write(b"one\ntwo\n")
    assert not again.changed
    assert lake.digest_of_file("a/b.jsonl") == hashlib.sha256(b"one\ntwo\n").hexdigest()


def test_what_was_not_finished_is_forgotten(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    lake.write_bytes("a.jsonl", b"old\n")
    with pytest.raises(ValueError, match="stop"):
        _stop_half_way(lake)
    with lake.create("a.jsonl") as unwanted:
        unwanted.file.write(b"new\n")
        unwanted.keep = False
    assert lake.read_bytes("a.jsonl") == b"old\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def _stop_half_way(lake: Lake) -> None:
    with lake.create("a.jsonl") as creation:
        creation.file.write(b"half")
        raise ValueError("stop")


def test_what_a_killed_writer_left_is_swept_away_once_it_is_old(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    old, young = tmp_path / ".a.jsonl.0123abcd", tmp_path / ".a.jsonl.4567abcd"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (0, 0))
    with lake.create("a.jsonl") as creation:
        creation.file.write(b"whole\n")
    assert not old.exists()
    assert young.exists()


def test_a_file_of_an_object_store_is_created_too() -> None:
    lake = Lake("memory://created")
    with lake.create("a/b.jsonl") as creation:
        creation.file.write(b"one\n")
    assert lake.read_bytes("a/b.jsonl") == b"one\n"
    with lake.open_bytes("a/b.jsonl") as file:
        assert file is not None
        file.seek(1)
        assert file.read(2) == b"ne"
    with lake.open_bytes("nowhere") as nothing:
        assert nothing is None
    assert lake.digest_of_file("nowhere") is None


def test_one_place_has_one_name_however_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = ["lake", "lake/", "./lake", f"{tmp_path}/lake/", f"file://{tmp_path}/lake"]
    assert {Lake(each).url for each in told} == {f"{tmp_path}/lake"}
    assert {Lake(each).url for each in ("memory://a/lake", "memory://a/lake/")} == {
        "memory://a/lake"
    }


def test_a_damaged_partition_is_named_with_the_next_move(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    path = Path(lake.write("things", "w", [thing()], Thing).path)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(LakeError, match="is damaged") as damaged:
        list(lake.read("things", "w", Thing))
    assert damaged.value.culprit == str(path)
    assert "Remove the file" in damaged.value.next_move

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Literal

import duckdb
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from debrief.errors import LakeError
from debrief.lake import DAMAGED_SUFFIX, Lake
from debrief.lake.tables import ORIGINALS


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
    sizes: dict[str, float] = {}


def thing(id_: str = "one", **fields: object) -> Thing:
    given = {"at": datetime(2026, 1, 5, tzinfo=UTC), "kind": "a", "ratio": None, **fields}
    return Thing(id=id_, **given)  # type: ignore[arg-type]


THINGS = st.builds(
    Thing,
    id=st.text(st.characters(codec="utf-8"), max_size=5),
    at=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),
    kind=st.sampled_from(["a", "b"]),
    ratio=st.none() | st.floats(allow_nan=False, allow_infinity=False),
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
    sizes=st.dictionaries(
        st.text(st.characters(codec="utf-8"), max_size=3),
        st.floats(allow_nan=False, allow_infinity=False),
        max_size=3,
    ),
)


@settings(max_examples=20, deadline=None)
@given(st.lists(THINGS, max_size=6))
def test_rows_come_back_as_they_were_written(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Thing]
) -> None:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    lake.write("things", "2026-01-05", rows, Thing)
    assert list(lake.read("things", "2026-01-05", Thing)) == rows


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


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "", "a/../../b"])
def test_no_name_leads_out_of_the_lake(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a name inside the lake"):
        Lake(str(tmp_path)).path(name)


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


def test_others_read_the_rows_of_a_table_and_pass_over_its_stamp(tmp_path: Path) -> None:
    rows = [thing(f"t{number}", ratio=number / 2, names=("x",)) for number in range(3)]
    written = Lake(str(tmp_path)).write("things", "w", rows, Thing)
    asked = f"SELECT count(*), max(ratio), max(names[1]) FROM '{tmp_path}/things/*.jsonl.zst'"
    with duckdb.connect() as database:
        assert database.sql(asked).fetchall() == [(3, 1.0, "x")]
    frame = pandas.read_json(written.path, lines=True)
    assert [*frame["id"]] == ["t0", "t1", "t2"]


@pytest.mark.parametrize("byte", [20, 60])
def test_no_changed_byte_of_a_table_is_read_as_rows(tmp_path: Path, byte: int) -> None:
    lake = Lake(str(tmp_path))
    path = Path(lake.write("things", "w", [thing(kind="b", names=("name",))], Thing).path)
    data = bytearray(path.read_bytes())
    data[byte] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(LakeError, match="is damaged"):
        list(lake.read("things", "w", Thing))


@pytest.mark.parametrize("umask", [0o022, 0o000])
@pytest.mark.parametrize(
    ("above", "folder", "file"), [(0o755, 0o700, 0o600), (0o2770, 0o2770, 0o660)]
)
def test_a_lake_is_its_owners_or_its_groups_and_nobody_elses(
    tmp_path: Path, umask: int, above: int, folder: int, file: int
) -> None:
    top = tmp_path / "srv"
    top.mkdir()
    top.chmod(above)
    before = os.umask(umask)
    try:
        Lake(str(top / "team" / "lake")).write("things", "2026-01-05", [thing()], Thing)
    finally:
        os.umask(before)
    made = {path: path.stat().st_mode & 0o7777 for path in (top / "team").rglob("*")}
    assert {mode for path, mode in made.items() if path.is_dir()} == {folder}
    assert {mode for path, mode in made.items() if path.is_file()} == {file}


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "cut":
        del data[len(data) // 2 :]
    else:
        data[len(data) * 2 // 3] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "changed"])
@pytest.mark.parametrize("table", sorted(ORIGINALS))
def test_what_no_run_makes_again_keeps_its_readable_rows_and_its_damaged_file(
    tmp_path: Path, table: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    lake = Lake(str(tmp_path))
    rows = [
        thing(f"t{number}", names=(Random(number).randbytes(400).hex(),)) for number in range(400)
    ]
    path = Path(lake.write(table, "w", rows, Thing).path)
    damaged(path, how)
    before = path.read_bytes()
    left = list(lake.read(table, "w", Thing))
    known = {row.id: row for row in rows}
    assert left
    assert all(row.id in known for row in left)
    if how == "cut":
        assert left == rows[: len(left)]
    assert list(lake.read(table, "w", Thing, ("id", {"t0", "t399"}))) == [
        row for row in left if row.id in ("t0", "t399")
    ]
    (warning,) = lake.damage.values()
    assert f"{len(left)} " in warning
    assert str(path) in warning
    assert "Restore it from a backup" in warning
    assert caplog.messages == [warning]
    lake.write(table, "w", [*left, thing("new")], Thing)
    assert list(lake.read(table, "w", Thing)) == [*left, thing("new")]
    assert not lake.damage
    (kept,) = tmp_path.rglob(f"*{DAMAGED_SUFFIX}")
    assert kept.read_bytes() == before
    assert lake.partitions(table) == ["w"]


def test_damaged_tombstones_stop_whoever_reads_them(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    damaged(Path(lake.write("forgotten", "w", [thing()], Thing).path), "cut")
    with pytest.raises(LakeError, match="forgotten sessions are read again"):
        list(lake.read("forgotten", "w", Thing))

"""A lake's tables as pandas frames: whatever the rows are, in types that do not depend on them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Literal

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from debrief.errors import InputError
from debrief.lake import Lake
from debrief.lake.frames import frame_of
from debrief.rubrics.model import UnminedSession
from debrief.tables import TABLES, LakeTable
from tests.frames import assert_is_frame_of

WEEKS = ("2026-10-05", "2026-10-12", "2026-10-19")


class Part(Struct, frozen=True):
    text: str
    number: int | None = None
    at: datetime | UnsetType = UNSET


class Whole(Struct, frozen=True):
    name: str
    count: int
    ratio: float
    sure: bool
    kind: Literal["a", "b"]
    part: Part
    perhaps: Part | None = None
    share: float | None = None
    number: int | None = None
    unset: bool | UnsetType = UNSET
    word: str | None = None
    at: datetime | None = None
    mixed: str | int = 0
    parts: tuple[Part, ...] = ()
    figures: dict[str, float] = {}
    pairs: tuple[tuple[float, float], ...] = ()
    data: bytes = b""


TABLE = LakeTable(Whole, weekly=True)
TYPES = {
    **{"week": "str", "name": "str", "count": "int64", "ratio": "float64", "sure": "bool"},
    **{"kind": "str", "part.text": "str", "part.number": "Int64"},
    **{"part.at": "datetime64[us, UTC]", "perhaps.text": "str", "perhaps.number": "Int64"},
    **{"perhaps.at": "datetime64[us, UTC]", "share": "float64", "number": "Int64"},
    **{"unset": "boolean", "word": "str", "at": "datetime64[us, UTC]", "mixed": "object"},
    **{"parts": "object", "figures": "object", "pairs": "object", "data": "object"},
}
zones = st.sampled_from([UTC, timezone(timedelta(hours=2)), timezone(timedelta(hours=-9))])
moments = st.datetimes(datetime(1990, 1, 1), datetime(2200, 1, 1), timezones=zones)
numbers = st.integers(-(2**53), 2**53)
floats = st.floats(allow_nan=False)
kept = st.builds(Part, st.text(), st.none() | numbers, st.sampled_from([UNSET]) | moments)
wholes = st.builds(
    Whole,
    name=st.text(),
    count=numbers,
    ratio=floats,
    part=kept,
    perhaps=st.none() | kept,
    share=st.none() | floats,
    number=st.none() | numbers,
    unset=st.sampled_from([UNSET, True, False]),
    word=st.none() | st.text(),
    at=st.none() | moments,
    mixed=st.text() | numbers,
    parts=st.lists(kept, max_size=2).map(tuple),
    figures=st.dictionaries(st.text(), floats, max_size=2),
    pairs=st.lists(st.tuples(floats, floats), max_size=2).map(tuple),
    data=st.binary(max_size=3),
)


def types_of(frame: pd.DataFrame) -> dict[str, str]:
    return {name: str(dtype) for name, dtype in frame.dtypes.items()}


@given(st.lists(wholes, max_size=3))
def test_whatever_the_rows_are_they_are_all_there_in_the_same_types(rows: list[Whole]) -> None:
    frame = frame_of((("2026-10-05", row) for row in rows), TABLE)

    assert types_of(frame) == TYPES
    assert_is_frame_of(frame, rows)


def test_every_table_has_a_frame_without_rows_and_the_types_of_one_with_rows(
    tmp_path: Path,
) -> None:
    lake = Lake(str(tmp_path))

    assert lake.tables() == []
    for name, table in TABLES.items():
        frame = lake.frame(name)
        assert (len(frame), frame.columns[0]) == (0, "week" if table.weekly else "partition")
        assert frame.columns.is_unique


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(str(tmp_path))
    for number, week in enumerate(WEEKS):
        rows = [_unmined(f"{week} {each}") for each in range(number + 1)]
        lake.write("unmined_sessions", week, rows, UnminedSession)
    return lake


def _unmined(id: str) -> UnminedSession:
    return UnminedSession(session_id=id, score_name="excellence", extractor="a", reason="b")


@pytest.mark.parametrize(
    ("weeks", "first", "last"),
    [
        ("", 0, 3),
        ("..", 0, 3),
        ("2026-10-12", 1, 2),
        ("2026-10-12..", 1, 3),
        ("..2026-10-12", 0, 2),
        ("2026-10-05..2026-10-12", 0, 2),
        ("2026-10-12..2026-10-12", 1, 2),
        ("2027-01-04..", 3, 3),
    ],
)
def test_weeks_are_chosen_as_a_range(lake: Lake, weeks: str, first: int, last: int) -> None:
    frame = lake.frame("unmined_sessions", weeks=weeks)

    chosen = [
        week for number, week in enumerate(WEEKS[first:last], first) for _ in range(number + 1)
    ]
    assert list(frame["week"]) == chosen
    assert [id.split()[0] for id in frame["session_id"]] == chosen


@pytest.mark.parametrize(
    ("table", "weeks", "words"),
    [
        ("scores", "", "session_scores"),
        ("session_scores", "2026-10-06..", "2026-10-06 is not the date of a Monday"),
        ("session_scores", "October", "October is not the date of a Monday"),
        ("session_scores", "2026-10-12..2026-10-05", "runs backwards"),
        ("recurring_friction", "2026-10-05", "is not made week by week"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    lake: Lake, table: str, weeks: str, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        lake.frame(table, weeks=weeks)


def test_a_lake_is_found_below_the_home_folder_or_by_the_settings(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(lake.url)
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.setenv("DEBRIEF_LAKE", lake.url)

    assert Lake(f"~/{folder.name}").tables() == Lake().tables() == ["unmined_sessions"]


@pytest.mark.parametrize("module", ["debrief.lake", "debrief.tables", "pipelines.definitions"])
def test_nothing_but_a_frame_waits_for_pandas(module: str) -> None:
    code = f"import sys, {module}; print('pandas' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"

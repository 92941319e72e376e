"""The weeks that are Dagster's partitions: from the first that the lake has, whoever asks."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.partitions import LATE_WEEKS, WEEKS, neighbours, not_listed, weeks_of
from debrief.keys import week_after, week_of
from debrief.lake import Lake
from debrief.sessions.model import Session
from debrief.sessions.scanning import ScanEntry
from debrief.sessions.store import SCAN_PARTITION, SCAN_TABLE, SESSIONS_TABLE
from pipelines.automation import new_sessions
from resources import Stages
from tests.object_store import Bucket, bucket, object_store_server
from tests.pipelines.conftest import Home, run_command
from tests.pipelines.test_run import conversation, write

__all__ = ["bucket", "object_store_server"]

OLD = "2025-03-03"
LISTED = "from assets.partitions import WEEKS; print(WEEKS.get_first_partition_key())"
WEEKS_OF_THE_PAST = st.integers(0, 200).map(lambda number: week_after("2022-01-03", number))


def found(week: str) -> ScanEntry:
    return ScanEntry(
        source="claude-code",
        path=f"/{week}.jsonl",
        size=1,
        mtime_ns=1,
        session_id=week,
        started=datetime.fromisoformat(f"{week}T12:00:00+00:00"),
        week=week,
    )


def filled(lake: Lake, read: set[str], scanned: set[str]) -> Lake:
    for week in read:
        lake.write(SESSIONS_TABLE, week, [], Session)
    lake.write(SCAN_TABLE, SCAN_PARTITION, map(found, sorted(scanned)), ScanEntry)
    return lake


@given(read=st.sets(WEEKS_OF_THE_PAST, max_size=3), scanned=st.sets(WEEKS_OF_THE_PAST, max_size=3))
def test_weeks_with_sessions_and_the_last_ones_are_partitions_and_no_others(
    tmp_path_factory: pytest.TempPathFactory, read: set[str], scanned: set[str]
) -> None:
    lake = filled(Lake(str(tmp_path_factory.mktemp("lake"))), read, scanned)
    now = week_of(datetime.now(UTC))
    late = {week_after(now, -number) for number in range(LATE_WEEKS + 2)}
    assert set(weeks_of(lake).get_partition_keys()) == late | read | scanned


def test_a_further_lake_that_runs_may_choose_counts(tmp_path: Path) -> None:
    own = filled(Lake(str(tmp_path / "own")), {"2026-02-02"}, set())
    further = filled(Lake(str(tmp_path / "further")), {OLD}, set())
    assert OLD not in weeks_of(own).get_partition_keys()
    assert {OLD, "2026-02-02"} <= set(weeks_of(own, further).get_partition_keys())


def test_a_lake_in_an_object_store_is_asked_a_few_times(bucket: Bucket) -> None:
    lake = filled(Lake(bucket.url("lake")), {"2026-02-02"}, {OLD})
    before = bucket.server.requests.total()
    assert weeks_of(lake).get_first_partition_key() == OLD
    assert bucket.server.requests.total() - before <= 4


@given(st.lists(st.integers(0, 30), unique=True).map(sorted), st.sets(st.integers(0, 30)))
def test_neighbours_are_all_that_is_taken_in_ranges_without_a_gap(
    numbers: list[int], taken: set[int]
) -> None:
    order, keys = list(map(str, numbers)), set(map(str, taken))
    groups = neighbours(order, keys)
    assert [key for group in groups for key in group] == [key for key in order if key in keys]
    for group in groups:
        first = order.index(group[0])
        assert order[first : first + len(group)] == group


def transcript_of_long_ago(home: Home) -> Path:
    folder = home.path / "transcripts"
    folder.mkdir()
    lines = [line.replace("2026-11-0", "2025-03-0") for line in conversation("old")]
    write(folder, "old.jsonl", lines)
    return folder


def test_a_lake_without_sessions_says_which_weeks_are_missing_and_lists_them_once_reloaded(
    home: Home,
) -> None:
    folder = transcript_of_long_ago(home)
    environment = home.environment(
        DEBRIEF_SESSIONS=str(folder), DEBRIEF_NO_MODEL="1", DEBRIEF_LANGFUSE="off"
    )

    def loaded() -> str:
        return run_command([sys.executable, "-c", LISTED], environment).out.strip()

    now = week_of(datetime.now(UTC))
    assert loaded() == week_after(now, -LATE_WEEKS - 1)
    dagster = [sys.executable, "-m", "dagster", "asset", "materialize", "--select", "raw_sessions"]
    module = ["-m", "pipelines.definitions"]
    first = run_command([*dagster, "--partition", now, *module], environment)
    assert first.code == 0, first.all
    assert f"Transcripts of 1 week ({OLD}) are new" in first.all
    assert "Reload the code location" in first.all
    assert loaded() == OLD
    second = run_command([*dagster, "--partition", OLD, *module], environment)
    assert second.code == 0, second.all
    assert "Reload the code location" not in second.all
    assert Lake(str(home.path / ".debrief/lake")).partitions(SESSIONS_TABLE) == [OLD]


def test_the_command_reads_weeks_that_are_older_than_the_lake(home: Home) -> None:
    folder = transcript_of_long_ago(home)
    lake = filled(Lake(str(home.path / "lake")), {"2026-10-05"}, set())
    run = ("run", "--no-model", "--sessions", str(folder), "--lake", lake.url)
    said = home.debrief(*run)
    assert said.code == 0, said.all
    assert OLD in lake.partitions("session_signals")


def test_the_sensor_names_the_weeks_that_are_no_partitions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = week_after(str(WEEKS.get_first_partition_key()), -1)
    assert not_listed([before]).startswith(f"Transcripts of 1 week ({before}) are new")
    assert not not_listed(WEEKS.get_partition_keys())
    monkeypatch.setattr("assets.partitions.WEEKS", later := _weeks_from("2026-10-05"))
    monkeypatch.setattr("pipelines.automation.WEEKS", later)
    folder = transcript_of_long_ago(Home(tmp_path))
    lake = str(tmp_path / "lake")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_LAKE", lake)
    monkeypatch.setenv("DEBRIEF_SESSIONS", str(folder))
    resources = {"stages": Stages(lake={"url": lake})}
    os.utime(folder / "old.jsonl", (1_760_000_000, 1_760_000_000))
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance=instance, resources=resources) as context,
    ):
        skipped = new_sessions(context)
    assert isinstance(skipped, dg.SkipReason)
    assert f"debrief run --week {OLD}`" in str(skipped.skip_message)


def _weeks_from(week: str) -> dg.WeeklyPartitionsDefinition:
    return dg.WeeklyPartitionsDefinition(start_date=week, day_offset=1, end_offset=1)

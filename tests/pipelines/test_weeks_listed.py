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

from assets.partitions import WEEKS, first_week, not_listed
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
def test_no_week_is_older_than_the_first_and_one_of_them_is_it(
    tmp_path_factory: pytest.TempPathFactory, read: set[str], scanned: set[str]
) -> None:
    first = first_week(filled(Lake(str(tmp_path_factory.mktemp("lake"))), read, scanned))
    weeks = read | scanned
    assert first in weeks if weeks else first == week_after(week_of(datetime.now(UTC)), -4)
    assert all(first <= week for week in weeks)


def test_a_further_lake_that_runs_may_choose_counts(tmp_path: Path) -> None:
    own = filled(Lake(str(tmp_path / "own")), {"2026-02-02"}, set())
    further = filled(Lake(str(tmp_path / "further")), {OLD}, set())
    assert (first_week(own), first_week(own, further)) == ("2026-02-02", OLD)


def test_a_lake_in_an_object_store_is_asked_a_few_times(bucket: Bucket) -> None:
    lake = filled(Lake(bucket.url("lake")), {"2026-02-02"}, {OLD})
    before = bucket.server.requests.total()
    assert first_week(lake) == OLD
    assert bucket.server.requests.total() - before <= 4


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
    assert loaded() == week_after(now, -4)
    dagster = [sys.executable, "-m", "dagster", "asset", "materialize", "--select", "raw_sessions"]
    module = ["-m", "pipelines.definitions"]
    first = run_command([*dagster, "--partition", now, *module], environment)
    assert first.code == 0, first.all
    assert f"transcripts of 1 week from {OLD} on" in first.all
    assert "reload the code location" in first.all
    assert loaded() == OLD
    second = run_command([*dagster, "--partition", OLD, *module], environment)
    assert second.code == 0, second.all
    assert "reload the code location" not in second.all
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
    assert not_listed([before]).startswith(f"There are transcripts of 1 week from {before} on")
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
    assert f"from {OLD} on" in str(skipped.skip_message)
    assert f"debrief run --week {OLD}..{OLD}" in str(skipped.skip_message)


def _weeks_from(week: str) -> dg.WeeklyPartitionsDefinition:
    return dg.WeeklyPartitionsDefinition(start_date=week, day_offset=1, end_offset=1)

"""Dagster's history in SQLite, its files kept open: all of it comes back, whoever opens it next."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dagster as dg
import psutil
import pytest
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage

from debrief.settings import Settings, load_settings
from pipelines.instance import dagster_home, open_instance

KILLED = """
import os, signal
import dagster as dg
from debrief.settings import load_settings
from pipelines.instance import open_instance
from tests.pipelines.test_local_storage import nothing
instance = open_instance(load_settings())
instance.report_run_failed(instance.create_run_for_job(nothing), "It was told before the end.")
os.kill(os.getpid(), signal.SIGKILL)
"""


@dg.job
def nothing() -> None: ...


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name in ("DAGSTER_HOME", "DATABASE_URL", "DEBRIEF_LAUNCH"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_LAKE", str(tmp_path / "lake"))
    return load_settings()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as found:
        yield found


def files_open(home: Path) -> list[str]:
    return [file.path for file in psutil.Process().open_files() if Path(file.path).parent == home]


def messages(storage: ConsolidatedSqliteEventLogStorage, run: str) -> list[str]:
    return [entry.message for entry in storage.get_logs_for_run(run)]


def test_what_is_written_is_what_dagsters_own_storages_read(
    instance: dg.DagsterInstance, settings: Settings
) -> None:
    run = instance.create_run_for_job(nothing, tags={"week": "2026-11-02"})
    instance.report_run_failed(run, "No key.")
    home = str(dagster_home(settings))
    stock = ConsolidatedSqliteEventLogStorage(home)
    assert messages(stock, run.run_id) == ["No key."]
    (found,) = SqliteRunStorage.from_local(home).get_runs()
    assert (found.run_id, found.tags["week"]) == (run.run_id, "2026-11-02")


def test_threads_write_and_read_at_once_and_nothing_is_lost(instance: dg.DagsterInstance) -> None:
    def report(number: int) -> int:
        run = instance.create_run_for_job(nothing)
        for line in range(5):
            instance.report_engine_event(f"{number}.{line}", run)
        return len(instance.all_logs(run.run_id))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(report, range(24))) == [5] * 24
    assert instance.get_runs_count() == 24


def test_a_process_that_is_killed_loses_nothing_that_it_told(settings: Settings) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED],
        env={**os.environ, "DEBRIEF_HOME": str(settings.home), "DEBRIEF_LAKE": settings.lake},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    with open_instance(settings) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.FAILURE
        told = [entry.message for entry in instance.all_logs(run.run_id)]
        assert told == ["It was told before the end."]


def test_its_files_are_open_while_it_is_and_closed_with_it(settings: Settings) -> None:
    home = dagster_home(settings)
    with open_instance(settings) as instance:
        instance.create_run_for_job(nothing)
        assert instance.get_runs_count() == 1
        assert str(home / "runs.db") in files_open(home)
    assert files_open(home) == []

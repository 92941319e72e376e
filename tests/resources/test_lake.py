"""One run at a time has a lake in a folder: what the next one says, and how long it waits."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from debrief.files import only_writer
from debrief.lake import Lake
from debrief.settings import load_settings
from pipelines.instance import open_instance
from resources import Stages
from tests.waiting import wait_until


@dg.asset
def rows(stages: Stages) -> None:
    """Look at the lake."""
    stages.open_lake().partitions("rows")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DEBRIEF_LAKE", str(tmp_path / "lake"))
    return Lake(str(tmp_path / "lake"))


def log_of(instance: dg.DagsterInstance, level: int) -> list[str]:
    records = [entry for run in instance.get_runs() for entry in instance.all_logs(run.run_id)]
    return [entry.user_message for entry in records if entry.level == level]


def carried_out(instance: dg.DagsterInstance, url: str = "") -> dg.ExecuteInProcessResult:
    resources: dict[str, Any] = {"stages": Stages(lake={"url": url})}
    return dg.materialize([rows], instance=instance, resources=resources, raise_on_error=False)


@pytest.mark.usefixtures("lake")
def test_runs_of_one_instance_wait_in_its_queue() -> None:
    with open_instance(load_settings()) as instance:
        queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == 1


def test_a_run_says_in_its_own_log_which_run_it_waits_for(lake: Lake, tmp_path: Path) -> None:
    ended: list[bool] = []
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        run = threading.Thread(target=lambda: ended.append(carried_out(instance).success))
        with only_writer(tmp_path / "home", lake.url, "run 1a2b3c"):
            run.start()
            line = f"waits for run 1a2b3c, which has {lake.url}"
            wait_until(lambda: line in log_of(instance, logging.INFO))
            assert not ended
        run.join()
        assert ended == [True]


def test_a_run_that_waited_for_too_long_fails_and_names_the_one_that_has_the_lake(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("debrief.files._LONGEST_WAIT", 0.1)
    with (
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
        only_writer(tmp_path / "home", lake.url, "run 1a2b3c"),
    ):
        assert not carried_out(instance).success
        (line,) = [line for line in log_of(instance, logging.ERROR) if lake.url in line]
    assert line.startswith(f"{lake.url}: is in use: run 1a2b3c has had it for too long")


def test_a_lake_that_settings_do_not_name_is_one_line_of_the_log(
    lake: Lake, tmp_path: Path
) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert not carried_out(instance, str(tmp_path / "other")).success
        told = log_of(instance, logging.ERROR)
    (line,) = [line for line in told if str(tmp_path / "other") in line and "\n" not in line]
    assert "DEBRIEF_LAKES" in line
    assert lake.url not in line

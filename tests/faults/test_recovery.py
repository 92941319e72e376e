"""Which of the runs under way are dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._core.launcher import DefaultRunLauncher
from dagster._core.storage.tags import GRPC_INFO_TAG
from dagster._serdes import ConfigurableClassData
from msgspec.structs import replace

from debrief.settings import load_settings
from debrief.state.leases import Keeper
from debrief.state.opening import open_state
from debrief.state.processes import this_process
from debrief.state.sqlite import SqliteState
from pipelines.instance import open_instance
from pipelines.recovery import settle_dead_runs
from resources.attendance import PARENT_TAG
from tests.pipelines.conftest import Home

GONE = replace(this_process(), number=2**22 + 1).encoded()
ALIVE = this_process().encoded()
STARTED, FAILURE = dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.FAILURE


@dg.job
def nothing() -> None: ...


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        yield instance


@pytest.fixture
def state() -> SqliteState:
    return SqliteState(None)


@pytest.fixture
def keeper(state: SqliteState) -> Keeper:
    return Keeper(state, dead=600.0)


@pytest.fixture
def impatient(state: SqliteState) -> Keeper:
    return Keeper(state, dead=0.01)


def started(instance: dg.DagsterInstance, tags: Mapping[str, str] | None = None) -> str:
    run = instance.create_run_for_job(nothing, tags=dict(tags or {}))
    event(instance, run.run_id, DagsterEventType.RUN_START)
    return run.run_id


def event(instance: dg.DagsterInstance, run: str, kind: DagsterEventType) -> None:
    instance.report_dagster_event(DagsterEvent(kind.value, "nothing"), run)


def status(instance: dg.DagsterInstance, run: str) -> dg.DagsterRunStatus:
    found = instance.get_run_by_id(run)
    assert found is not None
    return found.status


def test_a_run_whose_processes_are_all_gone_is_marked_as_failed(
    instance: dg.DagsterInstance, state: SqliteState, keeper: Keeper
) -> None:
    run, half, alive = (started(instance) for _ in range(3))
    state.take("a", run=run, token="1", process=GONE)
    state.take("b", run=half, token="2", process=GONE)
    state.take("c", run=half, token="3", process=ALIVE)
    state.take("d", run=alive, token="4", process=ALIVE)
    assert settle_dead_runs(instance, keeper) == [run]
    assert [status(instance, each) for each in (run, half, alive)] == [FAILURE, STARTED, STARTED]


def test_a_run_on_another_machine_is_dead_once_nothing_is_heard_of_it(
    instance: dg.DagsterInstance, state: SqliteState, keeper: Keeper, impatient: Keeper
) -> None:
    run = started(instance)
    elsewhere = replace(this_process(), machine="another").encoded()
    state.take("a", run=run, token="1", process=elsewhere)
    assert settle_dead_runs(instance, keeper) == []
    time.sleep(0.02)
    assert settle_dead_runs(instance, impatient) == [run]


def test_a_run_that_somebody_stopped_and_that_died_is_canceled(
    instance: dg.DagsterInstance, state: SqliteState, keeper: Keeper
) -> None:
    run = started(instance)
    event(instance, run, DagsterEventType.RUN_CANCELING)
    state.take("a", run=run, token="1", process=GONE)
    assert settle_dead_runs(instance, keeper) == [run]
    assert status(instance, run) is dg.DagsterRunStatus.CANCELED


def test_a_run_dies_with_the_one_that_launched_it_unless_it_shows_life_of_its_own(
    instance: dg.DagsterInstance, state: SqliteState, keeper: Keeper
) -> None:
    parent = started(instance)
    silent, alive = (started(instance, {PARENT_TAG: parent}) for _ in range(2))
    state.take("a", run=parent, token="1", process=GONE)
    state.take("b", run=alive, token="2", process=ALIVE)
    assert set(settle_dead_runs(instance, keeper)) == {parent, silent}
    assert status(instance, alive) is STARTED


def test_a_run_that_never_showed_life_is_dead_once_its_code_server_is_gone(
    instance: dg.DagsterInstance, keeper: Keeper, impatient: Keeper, tmp_path: Path
) -> None:
    server = {GRPC_INFO_TAG: json.dumps({"host": "localhost", "socket": str(tmp_path / "gone")})}
    orphan, unknown = started(instance, server), started(instance)
    assert settle_dead_runs(instance, keeper) == []
    time.sleep(0.02)
    assert settle_dead_runs(instance, impatient) == [orphan]
    assert status(instance, unknown) is STARTED


def test_a_run_that_ended_is_left_as_it_is(
    instance: dg.DagsterInstance, state: SqliteState, keeper: Keeper
) -> None:
    run = started(instance)
    event(instance, run, DagsterEventType.RUN_SUCCESS)
    state.take("a", run=run, token="1", process=GONE)
    assert settle_dead_runs(instance, keeper) == []
    assert status(instance, run) is dg.DagsterRunStatus.SUCCESS


def test_a_run_that_died_before_it_began_is_found_too(
    instance: dg.DagsterInstance, keeper: Keeper, impatient: Keeper, tmp_path: Path
) -> None:
    server = {GRPC_INFO_TAG: json.dumps({"host": "localhost", "socket": str(tmp_path / "gone")})}
    starting, waiting = (
        instance.create_run_for_job(nothing, tags=tags).run_id for tags in (server, {})
    )
    for run in (starting, waiting):
        event(instance, run, DagsterEventType.RUN_STARTING)
    assert settle_dead_runs(instance, keeper) == []
    time.sleep(0.02)
    assert settle_dead_runs(instance, impatient) == [starting]
    assert status(instance, waiting) is dg.DagsterRunStatus.STARTING


class Tower(DefaultRunLauncher):
    """A launcher that knows why a run's pod is not there, or that cannot be asked."""

    told: str | None = "0/3 nodes are available: 3 Insufficient memory."

    def get_run_worker_debug_info(
        self, run: dg.DagsterRun, include_container_logs: bool | None = True
    ) -> str | None:
        if self.told is None:
            raise ConnectionError("the cluster does not answer")
        return self.told

    @classmethod
    def from_config_value(cls, inst_data: ConfigurableClassData | None, config_value: Any) -> Tower:
        return cls(inst_data=inst_data, **config_value)


def monitored(folder: Path, **settings: Any) -> dg.DagsterInstance:
    """An instance with settings for the monitoring of runs, on a cluster."""
    folder.mkdir(exist_ok=True)
    return dg.DagsterInstance.local_temp(
        str(folder),
        overrides={
            "run_monitoring": settings,
            "run_launcher": {"module": __name__, "class": "Tower", "config": {}},
        },
    )


def test_a_run_whose_pod_never_starts_is_ended_in_time_and_told_why(
    tmp_path: Path, keeper: Keeper
) -> None:
    patient = {"enabled": False, "start_timeout_seconds": 900, "cancel_timeout_seconds": 900}
    for limits, ended in ((patient, False), ({**patient, "start_timeout_seconds": 0}, True)):
        with monitored(tmp_path / str(ended), **limits) as instance:
            run = instance.create_run_for_job(nothing).run_id
            event(instance, run, DagsterEventType.RUN_STARTING)
            working = started(instance)
            assert settle_dead_runs(instance, keeper) == ([run] if ended else [])
            assert status(instance, working) is STARTED
            if ended:
                assert status(instance, run) is FAILURE
                told = instance.all_logs(run)[-1].message or ""
                assert "did not begin within 0 s" in told
                assert "3 Insufficient memory" in told
                assert settle_dead_runs(instance, keeper) == []


def test_a_run_that_does_not_stop_is_ended_in_time_though_the_cluster_cannot_be_asked(
    tmp_path: Path, keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tower, "told", None)
    with monitored(tmp_path, enabled=False, cancel_timeout_seconds=0) as instance:
        run = instance.create_run_for_job(nothing).run_id
        event(instance, run, DagsterEventType.RUN_STARTING)
        event(instance, run, DagsterEventType.RUN_CANCELING)
        assert settle_dead_runs(instance, keeper) == [run]
        assert status(instance, run) is dg.DagsterRunStatus.CANCELED
        assert "the cluster does not answer" in (instance.all_logs(run)[-1].message or "")


def test_where_dagster_watches_runs_itself_it_is_left_to_that(
    tmp_path: Path, keeper: Keeper
) -> None:
    with monitored(tmp_path, enabled=True, start_timeout_seconds=0) as instance:
        run = instance.create_run_for_job(nothing).run_id
        event(instance, run, DagsterEventType.RUN_STARTING)
        assert settle_dead_runs(instance, keeper) == []
        assert status(instance, run) is dg.DagsterRunStatus.STARTING


def test_the_ui_settles_what_died_before_it_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")
    home = Home(tmp_path)
    environment = home.environment(DEBRIEF_STATE_URL="here")
    settings = load_settings(environment)
    with open_instance(settings) as instance:
        run = started(instance)
        open_state(settings).take("a", run=run, token="1", process=GONE)
        page = subprocess.Popen(
            [sys.executable, "-m", "pipelines.command", "ui", "--port", "1"],
            env=environment,
            cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert page.stderr is not None
            told = next(line for line in page.stderr if "marked as failed" in line)
        finally:
            os.killpg(page.pid, signal.SIGKILL)
            page.communicate()
        assert run[:8] in told
        assert status(instance, run) is FAILURE

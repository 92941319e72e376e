"""What tells that runs are handed out, and how they are cut."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.events import DagsterEvent, DagsterEventType
from dagster._daemon.monitoring.run_monitoring import monitor_starting_run
from dagster_postgres.utils import DagsterPostgresException
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import OperationalError

from assets.handing_out import policy_of_weeks
from debrief.errors import ConfigurationError
from debrief.settings import load_settings
from debrief.weeks import week_after
from pipelines.definitions import defs
from pipelines.distribution import Failed, carry_out, describe, patiently, pieces_of
from pipelines.instance import queue_configuration, write_configuration
from pipelines.queue import broker_of
from pipelines.ranges import range_tags, week_ranges
from pipelines.worker import make_app, work

SETTINGS = {"DEBRIEF_HOME": "/nowhere"}
QUEUE = load_settings({**SETTINGS, "DEBRIEF_LAUNCH": "queue"})


@given(st.sets(st.integers(0, 40), min_size=1), st.integers(1, 9))
def test_every_week_is_in_one_run_and_no_run_is_larger_than_told(
    numbers: set[int], most: int
) -> None:
    weeks = [week_after("2026-01-05", number) for number in sorted(numbers)]
    with pytest.MonkeyPatch.context() as told:
        told.setenv("DEBRIEF_LAUNCH", "queue")
        told.setenv("DEBRIEF_WEEKS_A_RUN", str(most))
        ranges = week_ranges(weeks)
    taken = []
    for first, last in ranges:
        run = [first]
        while run[-1] != last:
            run.append(week_after(run[-1]))
        assert len(run) <= most
        taken += run
    assert taken == weeks


def test_on_one_machine_a_run_takes_half_a_year(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBRIEF_LAUNCH", raising=False)
    monkeypatch.delenv("DEBRIEF_WEEKS_A_RUN", raising=False)
    weeks = [week_after("2023-01-02", number) for number in range(30)]
    assert week_ranges(weeks[:26]) == [(weeks[0], weeks[25])]
    assert week_ranges(weeks) == [(weeks[0], weeks[25]), (weeks[26], weeks[-1])]
    assert policy_of_weeks() == dg.BackfillPolicy.multi_run(max_partitions_per_run=26)


def test_on_one_machine_a_run_takes_as_many_weeks_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBRIEF_LAUNCH", raising=False)
    monkeypatch.setenv("DEBRIEF_WEEKS_A_RUN", "2")
    weeks = [week_after("2023-01-02", number) for number in range(3)]
    assert week_ranges(reversed(weeks)) == [(weeks[0], weeks[1]), (weeks[2], weeks[2])]


def test_a_backfill_from_the_ui_is_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_LAUNCH", "queue")
    monkeypatch.setenv("DEBRIEF_WEEKS_A_RUN", "3")
    assert policy_of_weeks() == dg.BackfillPolicy.multi_run(max_partitions_per_run=3)


def test_a_worker_says_what_it_is_not_told(tmp_path: Path) -> None:
    home = {"DEBRIEF_HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="DEBRIEF_BROKER: is not set"):
        work(load_settings(home))
    with pytest.raises(ConfigurationError, match="DAGSTER_DATABASE_URL: is not set"):
        work(load_settings({**home, "DEBRIEF_BROKER": "redis://nowhere:1/0"}))
    assert broker_of(load_settings({**home, "DEBRIEF_BROKER": "redis://a"})) == "redis://a"


def test_a_worker_takes_a_run_only_when_it_is_free() -> None:
    app = make_app("redis://127.0.0.1:1/0")
    assert app.conf.worker_disable_prefetch
    assert {"execute_job", "resume_job"} <= set(app.tasks)


def test_an_instance_that_starts_runs_here_hands_none_out(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        pieces = pieces_of("reports_job", [("", "")], {}, {})
        with pytest.raises(ConfigurationError, match="names no launcher that hands runs"):
            carry_out(instance, pieces)
        assert instance.get_runs() == []


def test_a_configuration_that_is_there_stays(tmp_path: Path) -> None:
    write_configuration(QUEUE, tmp_path)
    path = tmp_path / "dagster.yaml"
    assert "CeleryRunLauncher" in path.read_text()
    assert "password" not in path.read_text()
    path.write_text("mine: true\n")
    write_configuration(QUEUE, tmp_path)
    assert path.read_text() == "mine: true\n"


def test_there_is_one_queue_and_not_two() -> None:
    configuration = queue_configuration()
    assert configuration["run_coordinator"]["class"] == "DefaultRunCoordinator"
    assert "run_queue" not in configuration
    assert "runs" not in configuration["concurrency"]


def test_what_failed_alike_is_told_once() -> None:
    failed = [
        Failed("1" * 36, "a week", "no key"),
        Failed("2" * 36, "another", "no key"),
        Failed("3" * 36, "a third", "no disk"),
    ]
    assert describe(failed) == (
        "a week (run 11111111), another (run 22222222): no key; a third (run 33333333): no disk"
    )


def test_a_piece_without_partitions_has_no_range() -> None:
    (piece,) = pieces_of("reports_job", [("", "")], {"a": "b"}, {})
    assert piece.tags == {"a": "b"}
    (ranged,) = pieces_of("j", [("2026-01-05", "2026-01-12")], {}, {}, assets=("raw_sessions",))
    assert ranged.tags == range_tags("2026-01-05", "2026-01-12")
    assert ranged.told == "raw_sessions 2026-01-05 … 2026-01-12"


def test_a_broker_that_is_away_is_named_and_no_run_is_left_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEBRIEF_BROKER", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("DEBRIEF_HOME", str(tmp_path / "home"))
    home = tmp_path / "dagster"
    home.mkdir()
    configuration = {**queue_configuration(), "storage": {"sqlite": {"base_dir": str(home)}}}
    # It tries for twenty seconds otherwise.
    impatient = {"result_backend_transport_options": {"retry_policy": {"max_retries": 1}}}
    configuration["run_launcher"]["config"]["config_source"] = impatient
    (home / "dagster.yaml").write_text(yaml.safe_dump(configuration))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        with pytest.raises(ConfigurationError, match="DEBRIEF_BROKER: the broker took no run"):
            carry_out(instance, pieces_of("reports_job", [("", "")], {}, {}))
        assert all(run.is_finished for run in instance.get_runs())


def test_a_file_of_an_earlier_version_is_written_anew(tmp_path: Path) -> None:
    write_configuration(QUEUE, tmp_path)
    path = tmp_path / "dagster.yaml"
    path.write_text(path.read_text().replace("CeleryRunLauncher", "AnotherLauncher"))
    write_configuration(QUEUE, tmp_path)
    assert "CeleryRunLauncher" in path.read_text()
    assert [found.name for found in tmp_path.iterdir()] == ["dagster.yaml"]


@pytest.mark.parametrize(("days", "after"), [(6, "STARTING"), (8, "FAILURE")])
def test_a_run_that_waits_for_a_worker_is_not_taken_for_one_that_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, days: int, after: str
) -> None:
    monkeypatch.setenv("DEBRIEF_BROKER", "memory://")
    configuration = {**queue_configuration(), "storage": {"sqlite": {"base_dir": str(tmp_path)}}}
    configuration.pop("run_launcher")
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(configuration))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        run = instance.create_run_for_job(defs.resolve_job_def("reports_job"))
        starting = DagsterEvent(DagsterEventType.RUN_STARTING.value, run.job_name)
        handed_out = time.time() - days * 86_400
        instance.report_dagster_event(starting, run.run_id, timestamp=handed_out)
        (record,) = instance.get_run_records()
        monitor_starting_run(instance, record, logging.getLogger(__name__))
        (found,) = instance.get_runs()
        assert found.status.value == after


def test_a_storage_that_is_away_is_asked_again_and_what_is_wrong_is_told_at_once() -> None:
    answers = iter([OperationalError("", {}, Exception("gone")), DagsterPostgresException()])

    def ask() -> str:
        for error in answers:
            raise error
        return "back"

    assert patiently(ask, 20.0) == "back"
    for error, seconds in ((ValueError("wrong"), 20.0), (OperationalError("", {}, None), 0.0)):  # type: ignore[arg-type]
        answers = iter([error])
        with pytest.raises(type(error)):
            patiently(ask, seconds)


def test_what_steps_print_fills_no_workers_disk() -> None:
    assert queue_configuration()["compute_logs"]["class"] == "NoOpComputeLogManager"

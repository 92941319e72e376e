"""What tells that runs are handed out, and how they are cut."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from assets.handing_out import in_queue, policy_of_weeks, weeks_a_run
from debrief.errors import ConfigurationError
from debrief.settings import load_settings
from debrief.weeks import week_after
from pipelines.distribution import Failed, carry_out, describe, pieces_of, week_ranges
from pipelines.queue import broker_of, prepare_queue_home, queue_configuration
from pipelines.ranges import range_tags
from pipelines.worker import make_app, work

SETTINGS = {"DEBRIEF_HOME": "/nowhere"}


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


def test_on_one_machine_neighbours_are_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBRIEF_LAUNCH", raising=False)
    weeks = [week_after("2026-01-05", number) for number in range(9)]
    assert week_ranges(weeks) == [(weeks[0], weeks[-1])]
    assert policy_of_weeks() == dg.BackfillPolicy.single_run()


def test_a_backfill_from_the_ui_is_cut_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBRIEF_LAUNCH", "queue")
    monkeypatch.setenv("DEBRIEF_WEEKS_A_RUN", "3")
    assert policy_of_weeks() == dg.BackfillPolicy.multi_run(max_partitions_per_run=3)


@pytest.mark.parametrize("told", ["0", "-1", "two", "1.5", "²"])
def test_a_number_of_weeks_that_is_none_is_refused(told: str) -> None:
    with pytest.raises(ConfigurationError, match="is no number from 1 up"):
        weeks_a_run(load_settings({**SETTINGS, "DEBRIEF_WEEKS_A_RUN": told}))


def test_a_way_to_launch_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'celery' is not known"):
        in_queue(load_settings({**SETTINGS, "DEBRIEF_LAUNCH": "celery"}))
    assert not in_queue(load_settings(SETTINGS))
    assert not in_queue(load_settings({**SETTINGS, "DEBRIEF_LAUNCH": "here"}))


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
    prepare_queue_home(tmp_path)
    path = tmp_path / "dagster.yaml"
    assert "CeleryRunLauncher" in path.read_text()
    assert "password" not in path.read_text()
    path.write_text("mine: true\n")
    prepare_queue_home(tmp_path)
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
    (home / "dagster.yaml").write_text(yaml.safe_dump(configuration))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        with pytest.raises(ConfigurationError, match="DEBRIEF_BROKER: the broker took no run"):
            carry_out(instance, pieces_of("reports_job", [("", "")], {}, {}))
        assert all(run.is_finished for run in instance.get_runs())

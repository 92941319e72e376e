"""The configuration of processes that launch runs through a queue, and of workers."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest

from assets.partitions import weekly_backfill_policy
from debrief.errors import ConfigurationError
from debrief.settings import load_settings
from pipelines.instance import queue_configuration, write_configuration
from pipelines.worker import make_app, work

QUEUE = load_settings({"DEBRIEF_HOME": "/nowhere", "DEBRIEF_LAUNCH": "queue"})


def test_a_backfill_is_one_run_unless_weeks_a_run_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEBRIEF_WEEKS_A_RUN", raising=False)
    assert weekly_backfill_policy() == dg.BackfillPolicy.single_run()
    monkeypatch.setenv("DEBRIEF_WEEKS_A_RUN", "3")
    assert weekly_backfill_policy() == dg.BackfillPolicy.multi_run(max_partitions_per_run=3)


def test_a_worker_names_the_setting_that_is_missing(tmp_path: Path) -> None:
    home = {"DEBRIEF_HOME": str(tmp_path)}
    with pytest.raises(ConfigurationError, match="DEBRIEF_BROKER: is not set"):
        work(load_settings(home))
    with pytest.raises(ConfigurationError, match="DAGSTER_DATABASE_URL: is not set"):
        work(load_settings({**home, "DEBRIEF_BROKER": "redis://nowhere:1/0"}))


def test_a_worker_takes_a_run_only_when_it_is_free() -> None:
    app = make_app("redis://127.0.0.1:1/0")
    assert app.conf.worker_disable_prefetch
    assert {"execute_job", "resume_job"} <= set(app.tasks)


def test_our_own_configuration_is_written_anew_and_anothers_stays(tmp_path: Path) -> None:
    write_configuration(QUEUE, tmp_path)
    path = tmp_path / "dagster.yaml"
    assert "password" not in path.read_text()
    path.write_text(path.read_text().replace("CeleryRunLauncher", "AnotherLauncher"))
    write_configuration(QUEUE, tmp_path)
    assert "CeleryRunLauncher" in path.read_text()
    path.write_text("mine: true\n")
    write_configuration(QUEUE, tmp_path)
    assert path.read_text() == "mine: true\n"
    assert [each.name for each in tmp_path.iterdir()] == ["dagster.yaml"]


def test_what_steps_print_fills_no_workers_disk() -> None:
    assert queue_configuration()["compute_logs"]["class"] == "NoOpComputeLogManager"

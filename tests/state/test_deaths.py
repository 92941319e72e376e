"""What may die while a state is in use: its server, and the process that a step was started by."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg2
from msgspec.structs import replace

from debrief.recorder.postgres import EmbeddedPostgres
from debrief.state.leases import Keeper
from debrief.state.postgres import PostgresState
from debrief.state.processes import this_process
from tests.waiting import LONG, wait_until

ROOT = Path(__file__).parents[2]
PARENT = """
import multiprocessing, sys, time
from pathlib import Path

def step(file):
    from debrief.state.leases import stop_with_parent
    from debrief.state.watch import watch_of
    watch = watch_of("run")
    stop_with_parent(watch)
    stop_with_parent(watch)
    Path(file).write_text("works on")
    while not watch.over:
        time.sleep(0.01)
    Path(file).write_text(watch.over)

if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=step, args=(sys.argv[1],))
    child.start()
    time.sleep(600)
"""


def read_until(path: Path, beginning: str) -> str:
    wait_until(lambda: path.exists() and path.read_text().startswith(beginning))
    return path.read_text()


def heard_long_ago(server: EmbeddedPostgres) -> None:
    """Let the process on another machine be silent for as long as a server may be away."""
    with closing(psycopg2.connect(server.url)) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE debrief_state.leases SET beat = beat - 100 WHERE token = 't'")
        connection.commit()


def test_a_server_that_is_restarted_loses_nothing_and_nobody_notices(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path / "postgres", durable=False)
    state = PostgresState(server.url, patience=LONG)
    keeper = Keeper(PostgresState(server.url, patience=LONG), dead=30.0)
    stop = threading.Event()
    done: list[str] = []

    def work() -> None:
        while not stop.is_set():
            name = str(len(done))
            state.put(name, name.encode())
            assert state.get(name) == name.encode()
            assert state.reserve("run", 0.0, max_calls=None, max_usd=None)
            done.append(name)

    elsewhere = replace(this_process(), machine="another").encoded()
    assert state.take("other work", run="run", token="t", process=elsewhere)
    with keeper.hold("work", "run", print) as watch:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        time.sleep(0.3)
        heard_long_ago(server)
        server.close()
        before = len(done)
        time.sleep(0.3)
        server = EmbeddedPostgres(tmp_path / "postgres", durable=False)
        while len(done) < before + 10:
            assert thread.is_alive()
            time.sleep(0.01)
        other = state.lease("other work")
        assert other is not None
        assert other.now - other.beat > 100
        assert not keeper.is_dead(other), "nobody could be heard while the server was away"
        keeper.renew()
        watch.check()
        stop.set()
        thread.join(LONG)
        assert not thread.is_alive()
    assert [state.get(name) for name in done] == [name.encode() for name in done]
    calls, _ = state.spent("run")
    assert len(done) <= calls <= len(done) + 1
    state.close()
    server.close()


def test_a_step_stops_when_the_process_of_its_run_is_killed(tmp_path: Path) -> None:
    script, told = tmp_path / "parent.py", tmp_path / "told"
    script.write_text(PARENT)
    parent = subprocess.Popen(
        [sys.executable, str(script), str(told)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
    )
    read_until(told, "works on")
    parent.kill()
    parent.wait()
    assert read_until(told, "the run's") == f"the run's own process ({parent.pid}) died"

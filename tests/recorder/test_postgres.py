"""The Postgres that comes along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg2
import pytest

from debrief.recorder.postgres import (
    EmbeddedPostgres,
    database_url,
    is_running,
    url_of,
)
from debrief.recorder.storage.rows import StorageError
from debrief.recorder.storage.store import RecordStore
from debrief.settings import load_settings
from tests.machine import files_below
from tests.recorder.records import row, task
from tests.waiting import is_over, wait_until

_USER = """
import sys, time
from pathlib import Path
from debrief.recorder.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
print(server.url, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose server was used once."""
    folder = tmp_path_factory.mktemp("made") / "postgres"
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.migrate()
        store.add_task(task())
    return folder


@pytest.fixture
def folder(made: Path) -> Iterator[Path]:
    """The same, for a test that leaves it as it found it; its server does not run."""
    yield made
    if (pid := running(made)) is not None:
        os.kill(pid, signal.SIGQUIT)
        pytest.fail("the server was left running")


@contextmanager
def moved(folder: Path, to: Path) -> Iterator[Path]:
    """The folder in another place."""
    to.parent.mkdir(exist_ok=True)
    folder.rename(to)
    try:
        yield to
    finally:
        to.rename(folder)


def running(folder: Path) -> int | None:
    """The number of the folder's server, where it runs."""
    try:
        pid = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        alive = psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except (FileNotFoundError, psutil.NoSuchProcess):
        return None
    return pid if alive else None


def user(folder: Path) -> subprocess.Popen[str]:
    """Another process that uses the folder's server until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", _USER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("postgresql://")
    return process


def kill_server(folder: Path) -> None:
    """Kill every process of the folder's server, none of which can clean up."""
    pid = running(folder)
    assert pid is not None
    server = psutil.Process(pid)
    children = server.children()
    for process in (server, *children):
        # A child may end by itself as soon as the server has.
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_until(lambda: all(is_over(process.pid) for process in children))
    wait_until(lambda: running(folder) is None)


def test_a_server_runs_until_it_is_closed(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False) as server:
        assert is_running(folder)
        with RecordStore(server.url) as store:
            assert [found.id for found in store.tasks()] == ["cart"]
    assert not is_running(folder)
    assert running(folder) is None


def test_a_server_ends_with_the_process_that_started_it_and_can_be_started_at_once(
    folder: Path,
) -> None:
    owner = user(folder)
    owner.kill()
    owner.communicate()
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.check()


def test_after_everything_was_killed_all_that_was_answered_is_there(folder: Path) -> None:
    owner = user(folder)
    with RecordStore(url_of(folder)) as store:
        stored = store.add_session(row())
    owner.send_signal(signal.SIGSTOP)
    kill_server(folder)
    owner.kill()
    owner.communicate()
    assert (folder / "data" / "postmaster.pid").exists()
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        assert store.session(stored.id) == stored


@pytest.mark.parametrize("said", ["{pid}\n/somewhere\n", "", "no number"], ids=str)
def test_a_stale_pid_file_is_no_obstacle(folder: Path, said: str) -> None:
    (folder / "data" / "postmaster.pid").write_text(said.format(pid=os.getpid()))
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.check()


def test_the_path_may_be_longer_than_that_of_a_socket_and_hold_anything(
    folder: Path, tmp_path: Path
) -> None:
    deep = tmp_path / ("long" * 30) / "a, 'b' %20 ü"
    deep.mkdir(parents=True)
    with moved(folder, deep / "postgres") as place:
        with EmbeddedPostgres(place, durable=False) as server, RecordStore(server.url) as store:
            store.check()
            socket = Path(psycopg2.extensions.parse_dsn(server.url)["host"])
            assert socket.stat().st_mode & 0o077 == 0
        assert not socket.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="others run the server themselves")
def test_root_runs_it_as_somebody_else_and_opens_no_folder_for_it(
    folder: Path, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with moved(folder, closed / "postgres") as place, EmbeddedPostgres(place, durable=False):
        assert psutil.Process(running(place)).uids().effective != 0
        assert closed.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("PG_VERSION", r"was made by Postgres 17.*pg_restore it"),
        ("letters.txt", "is not a Postgres data folder"),
    ],
)
def test_a_folder_of_others_or_of_another_major_version_is_left_alone(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_text("17\n")
    with pytest.raises(StorageError, match=reason):
        EmbeddedPostgres(tmp_path, durable=False)
    assert files_below(tmp_path) == {f"data/{name}": b"17\n"}


def test_what_an_interrupted_start_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "making-half").mkdir()
    (tmp_path / "making-half" / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(tmp_path, durable=False) as server, RecordStore(server.url) as store:
        assert store.revision() is None
    assert not (tmp_path / "making-half").exists()


def test_a_server_that_does_not_start_says_why(folder: Path) -> None:
    settings = folder / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(f"{good}\nno_such_setting = 1\n")
    with pytest.raises(StorageError, match=r"did not start.*no_such_setting.*server\.log"):
        EmbeddedPostgres(folder, durable=False)
    settings.write_text(good)


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "postgres").write_text("")
    with pytest.raises(StorageError, match="DATABASE_URL"):
        EmbeddedPostgres(tmp_path / "postgres")


def test_the_address_in_the_environment_wins(tmp_path: Path) -> None:
    url = "postgresql://me@db.example:5432/records"
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path), "DATABASE_URL": url})
    assert database_url(settings) == url
    assert list(tmp_path.iterdir()) == []


def test_without_an_address_a_server_that_does_not_run_is_named_with_the_next_move(
    tmp_path: Path,
) -> None:
    settings = load_settings({"DEBRIEF_HOME": str(tmp_path)})
    with pytest.raises(StorageError, match="does not run") as refused:
        database_url(settings)
    assert "`debrief serve`" in refused.value.next_move


def test_a_command_that_needs_the_server_runs_it_until_its_end(folder: Path) -> None:
    with moved(folder, folder.parent / "home" / "postgres") as place:
        environment = {**os.environ, "DEBRIEF_HOME": str(place.parent), "DATABASE_URL": ""}
        done = subprocess.run(
            [sys.executable, "-m", "pipelines.command", "database", "status"],
            env=environment,
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "tasks     1" in done.stdout
        assert not is_running(place)

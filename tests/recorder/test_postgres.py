from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg2
import pytest

from debrief.recorder.errors import StorageError
from debrief.recorder.postgres import EmbeddedPostgres, database_url
from debrief.recorder.storage.store import RecordStore
from debrief.settings import load_settings
from tests.recorder.rows import row, task
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
        process.kill()
    wait_until(lambda: all(is_over(process.pid) for process in children))
    wait_until(lambda: running(folder) is None)


def test_a_server_starts_with_its_first_user_and_stops_with_its_last(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False) as first:
        with EmbeddedPostgres(folder, durable=False) as second:
            assert second.url == first.url
        assert running(folder)
        with RecordStore(first.url) as store:
            assert [found.id for found in store.tasks()] == ["cart"]
    assert running(folder) is None


def test_no_process_ends_the_work_of_another(folder: Path) -> None:
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        other = user(folder)
        other.communicate()
        assert running(folder)
        store.check()


def test_who_started_the_server_may_go_first(folder: Path) -> None:
    starter = user(folder)
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        starter.communicate()
        store.check()
    assert running(folder) is None


def test_a_user_that_was_killed_does_not_keep_the_server_running(folder: Path) -> None:
    crashed = user(folder)
    crashed.kill()
    crashed.communicate()
    assert running(folder)
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.check()
    assert running(folder) is None


def test_after_everything_was_killed_all_that_was_answered_is_there(folder: Path) -> None:
    owner = user(folder)
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        stored = store.add_session(row())
    owner.kill()
    kill_server(folder)
    owner.communicate()
    assert (folder / "data" / "postmaster.pid").exists()
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        assert store.session(stored.id) == stored


def test_a_server_that_was_killed_is_back_for_its_users_once_somebody_starts_it(
    folder: Path,
) -> None:
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.check()
        kill_server(folder)
        with pytest.raises(StorageError, match="debrief database status"):
            store.check()
        with EmbeddedPostgres(folder, durable=False):
            store.check()
        store.check()


@pytest.mark.parametrize("said", ["{pid}\n/somewhere\n", "", "no number"], ids=str)
def test_a_stale_pid_file_is_no_obstacle(folder: Path, said: str) -> None:
    (folder / "data" / "postmaster.pid").write_text(said.format(pid=os.getpid()))
    with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
        store.check()


def test_many_may_start_it_at_once(folder: Path) -> None:
    def used(_: int) -> str:
        with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
            store.check()
            return server.url

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(used, range(16)))) == 1
    assert running(folder) is None


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


@pytest.mark.skipif(os.geteuid() != 0, reason="others run the server themselves")
def test_a_folder_for_temporary_files_that_root_keeps_to_itself_takes_no_socket(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory() as closed:
        (Path(closed) / "inner").mkdir(mode=0o755)
        monkeypatch.setattr(tempfile, "tempdir", f"{closed}/inner")
        with EmbeddedPostgres(folder, durable=False) as server, RecordStore(server.url) as store:
            store.check()


def test_data_of_another_major_version_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(StorageError, match=r"was made by Postgres 17.*debrief database restore"):
        EmbeddedPostgres(tmp_path, durable=False)


def test_a_folder_that_is_no_data_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "letters.txt").write_text("mine")
    with pytest.raises(StorageError, match="is not a Postgres data folder"):
        EmbeddedPostgres(tmp_path, durable=False)
    assert (tmp_path / "data" / "letters.txt").read_text() == "mine"


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


def test_a_server_that_does_not_start_leaves_no_folder_for_a_socket(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = folder / "data" / "postgresql.conf"
    good = settings.read_text()
    settings.write_text(f"{good}\nno_such_setting = 1\n")
    with tempfile.TemporaryDirectory() as short:
        place = Path(short)
        place.chmod(0o711)
        monkeypatch.setattr(tempfile, "tempdir", short)
        with pytest.raises(StorageError):
            EmbeddedPostgres(folder, durable=False)
        assert list(place.iterdir()) == []
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

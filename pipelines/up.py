"""``debrief up``: Dagster's UI and daemon and the recorder's API, on one Postgres, as one."""

from __future__ import annotations

import fcntl
import hashlib
import http.client
import json
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.cli.console import console
from debrief.errors import ConfigurationError, InputError
from debrief.settings import Settings, load_settings
from debrief.weekly.message import UI_URL
from pipelines.supervising import Part, Supervisor, Watched
from pipelines.team_home import URL, dagster_database_url, prepare_team_home, team_home

LOCAL, EVERYWHERE = "127.0.0.1", "0.0.0.0"
_SOCKET_PATH = 100
"""Bytes that the path of a socket may have, with some to spare."""
_EXPOSED = (
    "--public: other machines can reach these ports. Dagster's UI asks nobody who they are: "
    "whoever reaches it can launch runs, spend money and read every page. Put a proxy with a "
    "login and TLS in front, and let it alone reach the ports."
)


class Ports(Struct, frozen=True, kw_only=True):
    """Where the parts listen."""

    ui: int = 3000
    api: int = 8484
    metrics: int = 9464
    public: bool = False
    """On all addresses of the machine, not only on loopback."""

    @property
    def host(self) -> str:
        """Return the address to listen on."""
        return EVERYWHERE if self.public else LOCAL


def up(ports: Ports, settings: Settings | None = None) -> None:
    """Start everything, and keep it up until this process is told to end.

    Raises:
        ConfigurationError: it is up already, or a port is taken.
        StorageError: there is no Postgres.
        GaveUpError: a part would not stay up.
    """
    settings = settings or load_settings()
    home = team_home(settings)
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    out = console()
    with _alone(home, ports):
        for port, option in ((ports.ui, "--port"), (ports.api, "--api-port"),
                             (ports.metrics, "--metrics-port")):  # fmt: skip
            _check_free(ports.host, port, option)
        if ports.public:
            console(stderr=True).print(f"debrief: {_EXPOSED}", style="yellow", soft_wrap=True)
        code = _code_socket(home)
        prepare_team_home(
            settings, {"grpc_server": {"socket": str(code), "location_name": "debrief"}}
        )
        with _postgres(settings) as (url, watched):
            out.print(f"Debrief is starting; logs are in {settings.home / 'logs'}", soft_wrap=True)
            supervisor = Supervisor(
                parts(home, url, code, ports),
                settings.home / "logs",
                watched=watched,
                tell=lambda line: out.print(line, soft_wrap=True),
            )
            supervisor.run(lambda: out.print(_greeting(settings, ports), soft_wrap=True))
        out.print("Debrief is down.")


def parts(home: Path, url: str, code: Path, ports: Ports) -> tuple[Part, ...]:
    """Return the programs that make up the whole, in the order in which they start."""
    environment = {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        URL: url,
        UI_URL: load_settings().ui_url or f"http://{LOCAL}:{ports.ui}",
        "PYTHONUNBUFFERED": "1",
    }
    workspace = str(home / "workspace.yaml")

    def part(name: str, words: str, *more: str, **options: Any) -> Part:
        command = (sys.executable, "-m", *words.split(), *more)
        return Part(name=name, command=command, environment=environment, **options)

    on = ("--host", ports.host)
    return (
        part("care", "pipelines.instance_care", str(code), once=True, again_before="code"),
        part(
            "code",
            "dagster code-server start -m pipelines.definitions --location-name debrief "
            "--use-python-environment-entry-point",
            "--socket",
            str(code),
            ready=listens(code),
            grace=30.0,
        ),
        Part(
            name="api",
            command=(
                *(sys.executable, "-m", "pipelines.command", "serve"),
                *(*on, "--port", str(ports.api)),
            ),
            environment={"PYTHONUNBUFFERED": "1"},
            ready=answers(ports.api, "/health"),
            grace=40.0,
        ),
        part(
            "webserver",
            "dagster_webserver --dagster-log-level warning",
            *on,
            *("--port", str(ports.ui), "--workspace", workspace),
            after=("care", "code"),
            ready=answers(ports.ui, "/server_info"),
        ),
        part("daemon", "dagster._daemon run", "--workspace", workspace, after=("care", "code")),
        part(
            "metrics",
            "pipelines.command metrics --serve",
            *on,
            *("--port", str(ports.metrics)),
            after=("care",),
            ready=answers(ports.metrics, "/health"),
        ),
    )


def answers(port: int, path: str) -> Callable[[], bool]:
    """Return a question: does a server on this machine answer, whatever it says?"""

    def ask() -> bool:
        with closing(http.client.HTTPConnection(LOCAL, port, timeout=1)) as connection:
            try:
                connection.request("GET", path)
                return connection.getresponse().status < 600
            except (OSError, http.client.HTTPException):
                return False

    return ask


def listens(path: Path) -> Callable[[], bool]:
    """Return a question: does a server listen on a socket?"""

    def ask() -> bool:
        with closing(socket.socket(socket.AF_UNIX)) as client:
            client.settimeout(1)
            try:
                client.connect(str(path))
            except OSError:
                return False
        return True

    return ask


def down(settings: Settings | None = None, patience: float = 120.0) -> bool:
    """End what ``up`` started on this home; return whether there was anything.

    Raises:
        InputError: it does not end.
    """
    lock = team_home(settings or load_settings()) / "lock"
    with suppress(FileNotFoundError), lock.open("r+") as file:
        if _locked(file.fileno()):
            return False
        process = int(json.loads(file.read() or "{}").get("process", 0))
        if process:
            os.kill(process, signal.SIGTERM)
        limit = time.monotonic() + patience
        while time.monotonic() < limit:
            if _locked(file.fileno()):
                return True
            time.sleep(0.1)
        raise InputError(f"process {process}", "does not end", "See its logs.")
    return False


@contextmanager
def _alone(home: Path, ports: Ports) -> Iterator[None]:
    """Hold the home, so that nobody else starts the same on it."""
    with (home / "lock").open("a+") as file:
        if not _locked(file.fileno()):
            file.seek(0)
            told = json.loads(file.read() or "{}")
            raise ConfigurationError(
                str(home),
                f"is in use: process {told.get('process', '?')} serves it on "
                f"http://{LOCAL}:{told.get('ui', '?')}",
                "End that one with `debrief down`, or set DEBRIEF_HOME to another folder.",
            )
        file.truncate(0)
        file.write(json.dumps({"process": os.getpid(), "ui": ports.ui}))
        file.flush()
        yield


def _locked(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_free(host: str, port: int, option: str) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port}", f"cannot be listened on ({error.strerror})", f"Name another: {option}"
        ) from error


def _code_socket(home: Path) -> Path:
    """Return where the code is served, in a folder that only this user may enter."""
    near = home / "code.sock"
    if len(os.fsencode(near)) <= _SOCKET_PATH:
        near.unlink(missing_ok=True)
        return near
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"debrief-code-{os.geteuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.geteuid() or found.st_mode & 0o077 or folder.is_symlink():
        raise ConfigurationError(str(folder), "is somebody else's", "Remove it, then try again.")
    (folder / "code.sock").unlink(missing_ok=True)
    return folder / "code.sock"


@contextmanager
def _postgres(settings: Settings) -> Iterator[tuple[str, tuple[Watched, ...]]]:
    """Yield the address of Dagster's tables, and the embedded server if they are in that."""
    if settings.dagster_database_url or settings.database_url:
        yield dagster_database_url(settings), ()
        return
    from debrief.recorder.postgres import FOLDER, EmbeddedPostgres
    from pipelines.team_home import in_schema

    folder = settings.home.absolute() / FOLDER
    held = [EmbeddedPostgres(folder)]

    def alive() -> bool:
        import psycopg2

        try:
            psycopg2.connect(held[0].url, connect_timeout=10).close()
        except psycopg2.OperationalError as error:
            # Too many connections, or still starting: it is there.
            return "FATAL" in str(error)
        return True

    def revive() -> None:
        held[0].close()
        held[0] = EmbeddedPostgres(folder)

    try:
        yield in_schema(held[0].url), (Watched(name="Postgres", alive=alive, revive=revive),)
    finally:
        held[0].close()


def _greeting(settings: Settings, ports: Ports) -> str:
    from debrief.recorder.storage.connecting import address_of

    url = settings.database_url
    database = (
        address_of(url)
        .set(drivername="postgresql")
        .difference_update_query(["password"])
        .render_as_string()
        if url
        else f"our own, in {settings.home / 'postgres'}"
    )
    return "\n".join(
        [
            "Debrief is up. Ctrl-C, or `debrief down`, ends all of it.",
            f"  Dagster UI    http://{LOCAL}:{ports.ui}",
            f"  recorder API  http://{LOCAL}:{ports.api}   (a token: debrief tokens create NAME)",
            f"  metrics       http://{LOCAL}:{ports.metrics}/metrics",
            f"  Postgres      {database}",
            f"  lake          {settings.lake}",
        ]
    )

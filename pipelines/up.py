"""``debrief up``: several programs kept running as one, on one Postgres."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from msgspec import Struct

from debrief.cli.shared import console, warn
from debrief.errors import ConfigurationError, DebriefError, InputError
from debrief.files import locked
from debrief.processes import make_socket_folder, stop_with_parent
from debrief.recorder.postgres import is_running, postgres_folder, url_of
from debrief.settings import Settings, load_settings
from pipelines.instance import URL, in_schema, prepare_team_home, team_home

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOG_SIZE = 5_000_000
_LAST_LINES = 12
_TICK = 0.2


class Program(Struct, frozen=True, kw_only=True):
    """One program of several."""

    name: str
    """Also the name of its log."""
    command: tuple[str, ...]
    environment: Mapping[str, str] = {}
    """Added to this process's own."""
    after: tuple[str, ...] = ()
    """Programs that must be ready before this one is started."""
    ready: Callable[[], bool] = lambda: True
    """Called until it returns True; takes a second at most."""
    start_timeout: float = 180.0
    """Seconds that it may take to be ready."""
    stop_timeout: float = 20.0
    """Seconds that it may take to end before it is killed."""


class Restarts(Struct, frozen=True, kw_only=True):
    """When a program that ended is started again."""

    first_wait: float = 1.0
    """Seconds; doubled with each end."""
    longest_wait: float = 30.0
    most: int = 5
    """Ends within ``within`` seconds; one more, and everything is stopped."""
    within: float = 300.0


class GaveUpError(DebriefError):
    """A program ended again and again."""


class Supervisor:
    """Runs programs until it is stopped, or one of them ends again and again.

    Args:
        programs: in the order in which they are started; they are stopped in reverse.
        logs: a folder for their output.
        restarts: when one is started again.
        report: receives lines for the person who watches.
    """

    def __init__(
        self,
        programs: Sequence[Program],
        logs: Path,
        *,
        restarts: Restarts | None = None,
        report: Callable[[str], None] = print,
    ) -> None:
        logs.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._report = report
        self._restarts = restarts or Restarts()
        self._children = {
            program.name: _Child(program, logs / f"{program.name}.log") for program in programs
        }
        self._stops = 0

    def run(self, started: Callable[[], None] = lambda: None) -> None:
        """Start everything, keep it running, and stop it at SIGINT, SIGTERM or SIGHUP.

        Args:
            started: called once, when all programs are ready for the first time.

        Raises:
            GaveUpError: a program ended again and again; all others were stopped.
        """
        former = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        is_started = False
        try:
            while not self._stops:
                for child in self._children.values():
                    self._keep_running(child)
                if not is_started and all(child.ready for child in self._children.values()):
                    is_started = True
                    started()
                time.sleep(_TICK)
        finally:
            for child in reversed(self._children.values()):
                child.stop(lambda: self._stops > 1)
            for number, handler in former.items():
                signal.signal(number, handler)

    def pid(self, name: str) -> int | None:
        """Return the process of a program; None while it does not run."""
        process = self._children[name].process
        return process.pid if process is not None else None

    def stop(self) -> None:
        """Have ``run`` stop everything and return; called twice, it kills what is left."""
        self._stops += 1

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self.stop()

    def _keep_running(self, child: _Child) -> None:
        program = child.program
        child.rotate_log()
        if child.process is None:
            is_due = time.monotonic() >= child.start_at
            if is_due and all(self._children[name].ready for name in program.after):
                child.start()
        elif (code := child.process.poll()) is not None:
            child.kill()
            self._restart_later(child, code)
        elif not child.ready:
            child.ready = program.ready()
            if not child.ready and time.monotonic() - child.start_at > program.start_timeout:
                self._report(f"{program.name} is not ready after {program.start_timeout:.0f} s")
                child.kill()
                self._restart_later(child, -signal.SIGKILL)

    def _restart_later(self, child: _Child, code: int) -> None:
        restarts, now, name = self._restarts, time.monotonic(), child.program.name
        child.ends = [end for end in child.ends if now - end < restarts.within] + [now]
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        if len(child.ends) > restarts.most:
            lines = "".join(f"\n  {line}" for line in child.last_lines())
            raise GaveUpError(
                name,
                f"ended {how}, {len(child.ends)} times within {restarts.within:.0f} s; its last "
                f"lines:{lines}\nEverything was stopped",
                f"Its log is {child.log}",
            )
        wait = min(restarts.first_wait * 2.0 ** (len(child.ends) - 1), restarts.longest_wait)
        child.start_at = now + wait
        self._report(f"{name} ended {how}; starting it again in {wait:.0f} s")


class _Child:
    """A program, and its process at the moment, which leads a group of its own."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None
        self.ready = False
        self.start_at = 0.0
        self.ends: list[float] = []

    def start(self) -> None:
        """Start the process."""
        self.start_at = time.monotonic()
        with self.log.open("ab") as output:
            header = f"--- {time.strftime('%Y-%m-%d %H:%M:%S')} starting {self.program.name}\n"
            output.write(header.encode())
            output.flush()
            self.process = subprocess.Popen(
                self.program.command,
                env={**os.environ, **self.program.environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=stop_with_parent(signal.SIGTERM),
            )

    def stop(self, at_once: Callable[[], bool]) -> None:
        """Ask the process to end; kill it after its time, or when ``at_once`` says so."""
        if self.process is not None:
            self.process.terminate()
            limit = time.monotonic() + self.program.stop_timeout
            while self.process.poll() is None and time.monotonic() < limit and not at_once():
                time.sleep(0.05)
            self.kill()

    def kill(self) -> None:
        """End the process and all that it started."""
        if self.process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process, self.ready = None, False

    def rotate_log(self) -> None:
        """Begin a new log when this one is long; the process goes on writing to the same file."""
        if self.log.exists() and self.log.stat().st_size > _LOG_SIZE:
            shutil.copyfile(self.log, self.log.with_suffix(".log.1"))
            os.truncate(self.log, 0)

    def last_lines(self) -> list[str]:
        """Return the end of the log."""
        return self.log.read_text(errors="replace").splitlines()[-_LAST_LINES:]


LOCAL, EVERYWHERE = "127.0.0.1", "0.0.0.0"
_LOCK, _PROCESS = "lock", "process"
"""In Dagster's home: held while it is up, and its process."""
_PUBLIC_WARNING = (
    "--public: other machines can reach these ports. Dagster's UI asks nobody who they are: "
    "whoever reaches it can launch runs, spend money and read every page. Put a proxy with a "
    "login and TLS in front, and let it alone reach the ports."
)


class Ports(Struct, frozen=True, kw_only=True):
    """Where the programs listen."""

    ui: int = 3000
    api: int = 8484
    metrics: int = 9464
    view: int = 3001
    public: bool = False
    """On all addresses of the machine, not only on loopback."""

    @property
    def host(self) -> str:
        """Return the address to listen on."""
        return EVERYWHERE if self.public else LOCAL


def up(ports: Ports, settings: Settings | None = None) -> None:
    """Start everything, and keep it running until this process is asked to end.

    Raises:
        ConfigurationError: it is up already, or a port is taken.
        GaveUpError: a program, such as Postgres, ended again and again.
    """
    settings = settings or load_settings()
    home = team_home(settings)
    out = console()
    with locked(home / _LOCK) as is_alone:
        if not is_alone:
            raise ConfigurationError(
                str(home),
                f"is in use: process {(home / _PROCESS).read_text()} serves it",
                "End that one with `debrief down`, or set DEBRIEF_HOME to another folder.",
            )
        (home / _PROCESS).write_text(str(os.getpid()))
        check_free(ports.host, ports.ui, "--port")
        check_free(ports.host, ports.api, "--api-port")
        check_free(ports.host, ports.metrics, "--metrics-port")
        check_free(ports.host, ports.view, "--view-port")
        if ports.public:
            warn(_PUBLIC_WARNING)
        code = make_socket_folder(home) / "code.sock"
        prepare_team_home(
            settings, {"grpc_server": {"socket": str(code), "location_name": "debrief"}}
        )
        logs = settings.home / "logs"
        out.print(f"Debrief is starting; logs are in {logs}")
        supervisor = Supervisor(programs(settings, home, code, ports), logs, report=out.print)
        supervisor.run(lambda: out.print(_greeting(settings, ports)))
        out.print("Debrief is down.")


def down(settings: Settings | None = None, timeout: float = 120.0) -> bool:
    """End what ``up`` started on this home; return whether it was up.

    Raises:
        InputError: it does not end.
    """
    home = team_home(settings or load_settings())
    with locked(home / _LOCK) as was_down:
        if was_down:
            return False
    process = int((home / _PROCESS).read_text())
    os.kill(process, signal.SIGTERM)
    with locked(home / _LOCK, timeout) as is_down:
        if not is_down:
            raise InputError(f"process {process}", "does not end", "See its logs.")
    return True


def programs(settings: Settings, home: Path, code: Path, ports: Ports) -> list[Program]:
    """Return the programs in the order in which they start.

    Args:
        settings: which databases.
        home: Dagster's.
        code: the socket of the code server.
        ports: where the others listen.
    """
    folder = postgres_folder(settings)
    is_embedded = not (settings.database_url or settings.dagster_database_url)
    environment = {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
        URL: settings.dagster_database_url or in_schema(settings.database_url or url_of(folder)),
        "DEBRIEF_UI_URL": settings.ui_url or f"http://{LOCAL}:{ports.ui}",
        "DEBRIEF_VIEW_URL": view_url(settings, ports.view),
    }
    workspace = ("--workspace", str(home / "workspace.yaml"))

    def program(name: str, *command: str, **options: Any) -> Program:
        command = (sys.executable, "-m", *command)
        return Program(name=name, command=command, environment=environment, **options)

    def server(name: str, *command: str, port: int, path: str, **options: Any) -> Program:
        command = (*command, "--host", ports.host, "--port", str(port))
        return program(name, *command, ready=lambda: answers(port, path), **options)

    postgres = program(
        "postgres", "debrief.recorder.postgres", ready=lambda: is_running(folder), stop_timeout=90.0
    )
    database, code_server = ("postgres",) if is_embedded else (), ("code",)
    code_command = ("pipelines.instance", str(code))
    ui = ("dagster_webserver", "--dagster-log-level", "warning", *workspace)
    api = ("pipelines.command", "serve")
    figures = ("pipelines.command", "metrics", "--serve")
    pages = ("pipelines.command", "view")
    accepts = partial(_accepts, code)
    return [
        *([postgres] if is_embedded else []),
        program("code", *code_command, ready=accepts, after=database, stop_timeout=30.0),
        server("api", *api, port=ports.api, path="/health", after=database, stop_timeout=40.0),
        server("webserver", *ui, port=ports.ui, path="/server_info", after=code_server),
        program("daemon", "dagster._daemon", "run", *workspace, after=code_server),
        server("metrics", *figures, port=ports.metrics, path="/health", after=code_server),
        server("view", *pages, port=ports.view, path="/static/style.css"),
    ]


def answers(port: int, path: str) -> bool:
    """Return whether a server on this machine answers, whatever it says."""
    with closing(http.client.HTTPConnection(LOCAL, port, timeout=1)) as connection:
        try:
            connection.request("GET", path)
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
    return True


def view_url(settings: Settings, port: int) -> str:
    """Return where people reach the pages that are started on a port."""
    is_set = "view_url" in settings.model_fields_set
    return settings.view_url if is_set else f"http://{LOCAL}:{port}"


def _accepts(path: Path) -> bool:
    with closing(socket.socket(socket.AF_UNIX)) as client:
        return client.connect_ex(str(path)) == 0


def check_free(host: str, port: int, option: str) -> None:
    """Raise when a port cannot be listened on.

    Raises:
        ConfigurationError: it cannot; ``option`` names another one.
    """
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port}",
            f"cannot be listened on ({os.strerror(error.errno or 0)})",
            f"Name another: {option}",
        ) from error


def _greeting(settings: Settings, ports: Ports) -> str:
    from debrief.recorder.storage.connecting import address_of

    database = f"our own, in {postgres_folder(settings)}"
    if url := settings.database_url:
        address = address_of(url).set(drivername="postgresql")
        database = address.difference_update_query(["password"]).render_as_string()
    return "\n".join(
        [
            "Debrief is up. Ctrl-C, or `debrief down`, ends all of it.",
            f"  Dagster UI    http://{LOCAL}:{ports.ui}",
            f"  pages         {view_url(settings, ports.view)}",
            f"  recorder API  http://{LOCAL}:{ports.api}   (a token: debrief tokens create NAME)",
            f"  metrics       http://{LOCAL}:{ports.metrics}/metrics",
            f"  Postgres      {database}",
            f"  lake          {settings.lake}",
        ]
    )

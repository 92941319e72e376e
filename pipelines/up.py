"""``debrief up``: what a team uses, kept running as one, on one Postgres."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from debrief.cli.shared import console, warn
from debrief.errors import ConfigurationError, InputError
from debrief.files import locked
from debrief.processes import make_socket_folder
from debrief.recorder.postgres import is_running, postgres_folder, url_of
from debrief.settings import Settings, load_settings
from pipelines.instance import URL, in_schema, prepare_team_home, team_home
from pipelines.supervising import Program, Supervisor

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
        for name in ("ui", "api", "metrics", "view"):
            option = "--port" if name == "ui" else f"--{name}-port"
            check_free(ports.host, getattr(ports, name), option)
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

    program = partial(module_of, environment=environment)

    def server(name: str, *command: str, port: int, **options: Any) -> Program:
        command = (*command, "--host", ports.host, "--port", str(port))
        return program(name, *command, port=port, **options)

    postgres = program(
        "postgres", "debrief.recorder.postgres", ready=lambda: is_running(folder), stop_timeout=90.0
    )
    database, code_server = ("postgres",) if is_embedded else (), ("code",)
    code_command = ("pipelines.instance", str(code))
    ui = ("dagster_webserver", "--dagster-log-level", "warning", *workspace)
    api = ("pipelines.command", "serve")
    figures = ("pipelines.command", "metrics", "--serve")
    pages = ("pipelines.command", "view")
    code_answers = partial(accepts, code)
    return [
        *([postgres] if is_embedded else []),
        program("code", *code_command, ready=code_answers, after=database, stop_timeout=30.0),
        server("api", *api, port=ports.api, path="/health", after=database, stop_timeout=40.0),
        server("webserver", *ui, port=ports.ui, path="/server_info", after=code_server),
        program("daemon", "dagster._daemon", "run", *workspace, after=code_server),
        server("metrics", *figures, port=ports.metrics, path="/health", after=code_server),
        server("view", *pages, port=ports.view, path="/static/style.css"),
    ]


def module_of(
    name: str, module: str, *arguments: str, port: int = 0, path: str = "", **options: Any
) -> Program:
    """Return a module as a program; with a port it is ready once a path of it answers there."""
    if port:
        options["ready"] = lambda: answers(port, path)
    return Program(name=name, command=(sys.executable, "-m", module, *arguments), **options)


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


def accepts(path: Path) -> bool:
    """Return whether a server listens on a Unix socket."""
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

"""``debrief up``: what a team uses, kept running as one, on one Postgres."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

from msgspec import Struct

from debrief.cli.shared import console, warn
from debrief.cli.view import OPEN_WARNING
from debrief.errors import ConfigurationError, InputError
from debrief.files import locked
from debrief.processes import make_socket_folder
from debrief.recorder.postgres import is_running, postgres_folder, url_of
from debrief.settings import DAGSTER_PATH, Settings, load_settings, variable_of
from pipelines.home import team_home
from pipelines.instance import URL, in_schema, prepare_team_home
from pipelines.programs import (
    CODE,
    EVERYWHERE,
    LOCAL,
    check_free,
    code_server,
    daemon,
    module,
    pages_address,
    server,
    web,
)
from pipelines.supervising import Program, Supervisor

_LOCK, _PROCESS = "lock", "process"
"""In Dagster's home: held while it is up, and its process."""


class Ports(Struct, frozen=True, kw_only=True):
    """Where the programs listen."""

    web: int = 3000
    api: int = 8484
    metrics: int = 9464
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
        for name in ("web", "api", "metrics"):
            option = "--port" if name == "web" else f"--{name}-port"
            check_free(ports.host, getattr(ports, name), option)
        if ports.public and not settings.identity_header:
            warn(OPEN_WARNING)
        code = make_socket_folder(home) / "code.sock"
        prepare_team_home(settings, code)
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
    os.environ |= {
        "DAGSTER_HOME": str(home),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        "PYTHONUNBUFFERED": "1",
        URL: settings.dagster_database_url or in_schema(settings.database_url or url_of(folder)),
        variable_of("view_url"): pages_address(settings, ports.web),
    }
    workspace = home / "workspace.yaml"
    postgres = module(
        "postgres", "debrief.recorder.postgres", ready=lambda: is_running(folder), stop_timeout=90.0
    )
    database = ("postgres",) if is_embedded else ()
    api = partial(server, "api", "pipelines.command", "serve", after=database, stop_timeout=40.0)
    metrics = partial(server, "metrics", "pipelines.command", "metrics", "--serve", after=(CODE,))
    return [
        *([postgres] if is_embedded else []),
        code_server(code, after=database),
        api(host=ports.host, port=ports.api),
        web(workspace, ports.host, ports.web),
        daemon(workspace),
        metrics(host=ports.host, port=ports.metrics),
    ]


def _greeting(settings: Settings, ports: Ports) -> str:
    from debrief.recorder.storage.connecting import address_of

    pages = pages_address(settings, ports.web)
    database = f"our own, in {postgres_folder(settings)}"
    if url := settings.database_url:
        address = address_of(url).set(drivername="postgresql")
        database = address.difference_update_query(["password"]).render_as_string()
    return "\n".join(
        [
            "Debrief is up. Ctrl-C, or `debrief down`, ends all of it.",
            f"  pages         {pages}",
            f"  Dagster UI    {pages}{DAGSTER_PATH}",
            f"  recorder API  http://{LOCAL}:{ports.api}   (a token: debrief tokens create NAME)",
            f"  metrics       http://{LOCAL}:{ports.metrics}/metrics",
            f"  Postgres      {database}",
            f"  lake          {settings.lake}",
        ]
    )

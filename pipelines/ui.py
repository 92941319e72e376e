"""``debrief ui``: the pages of a lake with Dagster's UI, its code server and its daemon."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path

from debrief.cli.run_options import UiOptions
from debrief.cli.shared import console, warn
from debrief.cli.view import OPEN_WARNING
from debrief.door.app import HEALTH
from debrief.errors import ConfigurationError, DebriefError
from debrief.files import locked, make_private
from debrief.processes import accepts, make_socket_folder, stop_with_parent
from debrief.settings import DAGSTER_PATH, Settings, environment, given
from pipelines.instance import (
    code_socket,
    installed,
    open_instance,
    prepare_workspace,
)

_LOCAL, _EVERYWHERE = "127.0.0.1", "0.0.0.0"
_PATIENCE = 20.0
"""Seconds that a process has for its end."""
_LAST_LINES = 12
_TICK = 0.2


def start_ui(options: UiOptions) -> None:
    """Start everything, say the address when it answers, and wait for Ctrl-C or SIGTERM.

    Raises:
        ConfigurationError: the port is taken, or another ``debrief ui`` shows this lake: two
            daemons on one storage would do the same work twice.
        DebriefError: a process ended by itself.
    """
    address = f"http://{_LOCAL}:{options.port}"
    with ExitStack() as stack:
        settings = stack.enter_context(options.places.applied())
        if "view_url" not in settings.model_fields_set:
            settings = stack.enter_context(given({"view_url": address}))
        _serve(options, settings, address)


def _serve(options: UiOptions, settings: Settings, address: str) -> None:
    host, out = _EVERYWHERE if options.public else _LOCAL, console()
    _check_free(host, options.port)
    if options.public and not settings.identity_header:
        warn(OPEN_WARNING)
    with open_instance(settings) as instance:
        home = Path(instance.root_directory)
    with ExitStack() as stack:
        if not stack.enter_context(locked(lock := home / ".ui")):
            reason = f"Look at {lock.read_text(encoding='utf-8')}"
            raise ConfigurationError(settings.lake, "is shown already", reason)
        lock.write_text(address, encoding="utf-8")
        make_socket_folder(home)
        code, logs = code_socket(home), settings.home / "logs"
        make_private(logs)
        workspace = prepare_workspace(home, code)
        out.print(f"Starting the UI on {settings.lake}; its logs are in {logs}")
        # SIGINT too: where it is ignored, Dagster's programs would ignore SIGTERM as well.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.default_int_handler)
        stack.enter_context(suppress(KeyboardInterrupt))
        running: dict[Path, subprocess.Popen[bytes]] = {}

        def start(name: str, *command: str) -> None:
            log = logs / f"{name}.log"
            running[log] = _start(command, log)
            stack.callback(_stop, running[log])

        python = (sys.executable, "-m")
        server = "dagster code-server start -m pipelines.definitions --location-name debrief"
        server += " --use-python-environment-entry-point --socket"
        start("code", *python, *server.split(), str(code))
        _wait(running, partial(accepts, code))
        known = ("--workspace", str(workspace))
        start("daemon", installed("dagster-daemon"), "run", *known)
        start("web", *python, "pipelines.web", *known, "--host", host, "--port", str(options.port))
        _wait(running, partial(_answers, options.port))
        out.print(f"{address}  the pages: read sessions, scores, prompts  (Ctrl-C stops it)")
        out.print(f"{address}{DAGSTER_PATH}  Dagster: run things")
        if options.open:
            webbrowser.open(address)
        _wait(running, lambda: False)


def _start(command: tuple[str, ...], log: Path) -> subprocess.Popen[bytes]:
    """Start a process that leads a group of its own, and ends with this one."""
    with log.open("ab") as output:
        output.truncate(0)
        return subprocess.Popen(
            command,
            env={**environment(), "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C comes here, and from here to it
            preexec_fn=stop_with_parent(signal.SIGTERM),
        )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, and kill what is left of it and of all that it started."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C does not wait
        process.wait(_PATIENCE)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _wait(running: Mapping[Path, subprocess.Popen[bytes]], until: Callable[[], bool]) -> None:
    """Wait until something holds, while all processes run.

    Raises:
        DebriefError: one ended.
    """
    while not until():
        for log, process in running.items():
            if (code := process.poll()) is not None:
                lines = log.read_text(errors="replace").splitlines()[-_LAST_LINES:]
                how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
                last = "".join(f"\n  {line}" for line in lines)
                reason = f"ended {how}; its last lines:{last}\nEverything was stopped"
                raise DebriefError(log.stem, reason, f"Its log is {log}")
        time.sleep(_TICK)


def _answers(port: int) -> bool:
    with closing(http.client.HTTPConnection(_LOCAL, port, timeout=1)) as connection:
        try:
            connection.request("GET", HEALTH)
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
    return True


def _check_free(host: str, port: int) -> None:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        raise ConfigurationError(
            f"{host}:{port}",
            f"cannot be listened on ({os.strerror(error.errno or 0)})",
            "Name another: --port",
        ) from error

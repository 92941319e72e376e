"""The processes behind ``debrief ui`` and ``debrief up``, and how each shows that it is ready."""

from __future__ import annotations

import http.client
import os
import socket
import sys
import sysconfig
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from debrief.door.app import HEALTH
from debrief.errors import ConfigurationError
from debrief.settings import Settings
from pipelines.supervising import Program

LOCAL, EVERYWHERE = "127.0.0.1", "0.0.0.0"
CODE = "code"
"""The name of the code server, which Dagster's own programs wait for."""


def code_server(code: Path, after: tuple[str, ...] = ()) -> Program:
    """Return the program that holds the assets and jobs, on a Unix socket."""
    ready = partial(accepts, code)
    return module(
        CODE, "pipelines.instance", str(code), ready=ready, after=after, stop_timeout=30.0
    )


def daemon(workspace: Path) -> Program:
    """Return Dagster's daemon: schedules, sensors, backfills, the queue."""
    command = (installed("dagster-daemon"), "run", "--workspace", str(workspace))
    return Program(name="daemon", command=command, after=(CODE,))


def web(workspace: Path, host: str, port: int) -> Program:
    """Return the pages with Dagster's UI."""
    words = ("--workspace", str(workspace))
    return server("web", "pipelines.web", *words, host=host, port=port, after=(CODE,))


def server(name: str, *words: str, host: str, port: int, **options: Any) -> Program:
    """Return a module that listens on a port; it is ready once its health answers."""
    words = (*words, "--host", host, "--port", str(port))
    return module(name, *words, ready=partial(answers, port, HEALTH), **options)


def module(name: str, *words: str, **options: Any) -> Program:
    """Return a Python module with its arguments as a program."""
    return Program(name=name, command=(sys.executable, "-m", *words), **options)


def installed(program: str) -> str:
    """Return the path of a program that a library brought along, beside this Python."""
    return str(Path(sysconfig.get_path("scripts"), program))


def answers(port: int, path: str) -> bool:
    """Return whether a server on this machine answers, whatever it says."""
    with closing(http.client.HTTPConnection(LOCAL, port, timeout=1)) as connection:
        try:
            connection.request("GET", path)
            connection.getresponse()
        except (OSError, http.client.HTTPException):
            return False
    return True


def accepts(path: Path) -> bool:
    """Return whether a server listens on a Unix socket."""
    with closing(socket.socket(socket.AF_UNIX)) as client:
        return client.connect_ex(str(path)) == 0


def pages_address(settings: Settings, port: int) -> str:
    """Return where people reach the pages that are started on a port."""
    is_set = "view_url" in settings.model_fields_set
    return settings.view_url if is_set else f"http://{LOCAL}:{port}"


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

"""The service as a process: a listening socket, uvicorn with its limits, and a clean end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from uvicorn import Config, Server

from debrief.errors import ConfigurationError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from debrief.recorder.service.routes import ServiceLimits

_LONGEST_HEAD = 16_384
"""Bytes of a request's line and headers."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections; port 0 is any that is free.

    Raises:
        ConfigurationError: the address is not this machine's, or is taken.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            f"{host}:{port}",
            f"cannot be listened on ({reason})",
            "Name another: --host, --port",
        ) from error


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def url_of(listener: socket.socket) -> str:
    """Return the address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(
    app: FastAPI, limits: ServiceLimits, listener: socket.socket, on_start: Callable[[], None]
) -> None:
    """Answer requests until SIGTERM or SIGINT; then running ones have ``limits.stop_seconds``.

    A second SIGINT does not wait for them. Call it in the main thread.
    """
    server = make_server(app, limits)
    # Also while uvicorn starts, and when it raises the signal once more after its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    on_start()
    server.run([listener])


def make_server(app: FastAPI, limits: ServiceLimits) -> Server:
    """Return a server with its limits; ``run`` it with a listening socket."""
    config = Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=limits.stop_seconds,
    )
    return Server(config)

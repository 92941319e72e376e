"""The service as a process: a listening socket, uvicorn with its limits, and a clean end."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING

from msgspec import Struct
from uvicorn import Config, Server
from uvicorn.config import LOGGING_CONFIG

from debrief.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

LEVELS = ("debug", "info", "warning", "error")
"""Of the log."""
_LONGEST_HEAD = 16_384
"""Bytes of a request's line and headers."""


class ServiceLimits(Struct, frozen=True, kw_only=True):
    """How much clients may request. Slow clients are a proxy's business."""

    connections: int = 256
    """At once; above it, the server answers 503."""
    exports: int = 4
    """At once. Each uses a connection to the database."""
    requests_a_second: float = 400.0
    """Of one token, over time."""
    burst: int = 4_000
    """Requests of one token at once."""


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


def url_of(listener: socket.socket) -> str:
    """Return the address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def run(
    app: ASGIApp,
    limits: ServiceLimits,
    listener: socket.socket,
    on_start: Callable[[], None] = lambda: None,
    *,
    websockets: bool = False,
    log_level: str | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT; then running ones have 30 seconds.

    A second SIGINT does not wait for them. Call it in the main thread.
    """
    server = make_server(app, limits, websockets=websockets, log_level=log_level)
    # Also while uvicorn starts, and when it raises the signal once more after its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    on_start()
    server.run([listener])


def make_server(
    app: ASGIApp,
    limits: ServiceLimits,
    *,
    websockets: bool = False,
    log_level: str | None = None,
) -> Server:
    """Return a server with its limits; ``run`` it with a listening socket.

    An answer without an end asks ``is_ending`` in its request's state, and ends.

    Args:
        app: answers the requests.
        limits: how much clients may request.
        websockets: they are taken too.
        log_level: of uvicorn's log, which goes to the error output; there is none without.
    """
    log_config = deepcopy(LOGGING_CONFIG)
    log_config["handlers"]["access"]["stream"] = "ext://sys.stderr"

    async def with_end(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["is_ending"] = lambda: server.should_exit
        await app(scope, receive, send)

    config = Config(
        with_end,
        http="h11",
        ws="auto" if websockets else "none",
        lifespan="off",
        log_config=log_config if log_level else None,
        log_level=log_level,
        access_log=log_level is not None,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        limit_concurrency=limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=30,
    )
    server = Server(config)
    return server

"""The service as a process: a listening socket, uvicorn with its limits, and a clean end."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
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


class _Server(Server):
    """Calls back when it listens, and returns after a signal instead of raising it again."""

    def __init__(self, config: Config, on_start: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start = on_start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_start()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        previous = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def make_server(
    app: FastAPI, limits: ServiceLimits, on_start: Callable[[], None] = lambda: None
) -> Server:
    """Return a server for the application; ``run`` it with a listening socket.

    The first SIGTERM or SIGINT stops it from accepting connections; running requests have
    ``limits.stop_seconds`` to end. The second one does not wait.
    """
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
    return _Server(config, on_start)

"""The service as a process: a listening socket, a server with limits, and a clean end."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from uvicorn import Config, Server

from debrief.errors import ConfigurationError
from debrief.recorder.service.protocol import limited

if TYPE_CHECKING:
    from fastapi import FastAPI

    from debrief.recorder.service.limits import Limits

_BACKLOG = 2_048


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that takes connections; port 0 is any that is free.

    Raises:
        ConfigurationError: the address is not this machine's, or somebody else listens there.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except (OSError, OverflowError) as error:
        raise ConfigurationError(
            f"{host}:{port}",
            f"cannot be listened on ({_in_words(error)})",
            "Name another: --host, --port",
        ) from error


def _in_words(error: OSError | OverflowError) -> str:
    if isinstance(error, socket.gaierror) or not isinstance(error, OSError) or not error.errno:
        return getattr(error, "strerror", None) or str(error)
    return os.strerror(error.errno)


def is_local(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    return host in ("localhost", "::1") or host.startswith("127.")


def url_of(listener: socket.socket) -> str:
    """Return the address that a client on this machine uses."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


class _Server(Server):
    """Ends at a signal and returns, so that what was started around it can be stopped."""

    def __init__(self, config: Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        former = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in former.items():
                signal.signal(number, handler)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def make_server(app: FastAPI, limits: Limits, started: Callable[[], None] = lambda: None) -> Server:
    """Return a server for the application; ``run`` it with a listening socket.

    The first SIGTERM or SIGINT stops it from taking connections; running requests have
    ``limits.stop_seconds`` to end. The second one does not wait.
    """
    config = Config(
        app,
        http=limited(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=limits.stop_seconds,
    )
    return _Server(config, started)

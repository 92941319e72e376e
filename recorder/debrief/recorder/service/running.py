"""The service as a process: a listening socket, uvicorn with its limits, and a clean end."""

from __future__ import annotations

import logging
import signal
import socket
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from traceback import extract_tb
from typing import TYPE_CHECKING, TextIO

import orjson
from msgspec import Struct
from uvicorn import Config, Server

from debrief.errors import ConfigurationError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
) -> None:
    """Answer requests until SIGTERM or SIGINT; then running ones have 30 seconds.

    A second SIGINT does not wait for them. Call it in the main thread.
    """
    server = make_server(app, limits, websockets=websockets)
    # Also while uvicorn starts, and when it raises the signal once more after its end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    on_start()
    server.run([listener])


def make_server(app: ASGIApp, limits: ServiceLimits, *, websockets: bool = False) -> Server:
    """Return a server with its limits; ``run`` it with a listening socket.

    An answer without an end asks ``is_ending`` in its request's state, and ends.
    """

    async def with_end(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["is_ending"] = lambda: server.should_exit
        await app(scope, receive, send)

    config = Config(
        with_end,
        http="h11",
        ws="auto" if websockets else "none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        h11_max_incomplete_event_size=_LONGEST_HEAD,
        limit_concurrency=limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=30,
    )
    server = Server(config)
    return server


LOGGER = "debrief.recorder"
LEVELS = ("debug", "info", "warning", "error")


class JsonLogFormatter(logging.Formatter):
    """Formats a log record as one line of JSON, with the fields it was given."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line.update(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
            # The error's message stays out: it may quote data.
            line["where"] = [
                f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                for frame in extract_tb(record.exc_info[2])[-12:]
            ]
        return orjson.dumps(line, default=str).decode()


def start_logging(level: str, stream: TextIO | None = None) -> None:
    """Send all logs of the process to the error output as JSON lines."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLogFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio"):
        logger = logging.getLogger(name)
        logger.handlers[:] = []
        logger.propagate = True
        logger.setLevel(logging.DEBUG if level == "debug" else logging.ERROR)


class RequestLog:
    """Gives every request an id, and writes a line about it when it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._logger = logging.getLogger(LOGGER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count its bytes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = perf_counter()
        request_id = token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        status, sent, received, whole = 0, 0, 0, False

        async def counted_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def counted_send(message: Message) -> None:
            nonlocal status, sent, whole
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", []),
                    (b"debrief-request-id", request_id.encode()),
                ]
            else:
                sent += len(message.get("body", b""))
                whole = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, counted_receive, counted_send)
        finally:
            route = getattr(scope.get("route"), "path", None)
            fields: dict[str, object] = {
                "id": request_id,
                "method": scope["method"] if scope["method"].isalpha() else "?",
                "route": route,
                "status": status,
                "ms": round((perf_counter() - started) * 1000, 1),
                "bytes_in": received,
                "bytes_out": sent,
                "token": scope["state"].get("token_name"),
            }
            if not whole:
                fields["whole"] = False
            level = logging.DEBUG if route == "/health" and status == 200 else logging.INFO
            self._logger.log(level, "request", extra={"fields": fields})

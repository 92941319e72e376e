"""A server on loopback that answers as a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass
class Request:
    """A request as it came in; its path has the query."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Reply:
    """What is answered; a longer ``Content-Length`` than its body cuts the answer short."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class LoopbackServer(ThreadingHTTPServer):
    """A server; use it as a context."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Request], Reply]) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LoopbackServer

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        reply = self.server.answer(Request(self.command, self.path, self.headers, body))
        headers = {"Content-Length": str(len(reply.body)), **reply.headers}
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)
        self.close_connection |= int(headers["Content-Length"]) > len(reply.body)

    do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

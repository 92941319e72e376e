"""Services that take files: their clients' and validators' own rules, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.trainers.checks.words import lines_of

FEWEST = 10
"""Lines that OpenAI asks for in a file."""


@contextmanager
def service() -> Iterator[str]:
    """Run a service that takes files and jobs as OpenAI's does, and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()


class _Service(BaseHTTPRequestHandler):
    taken = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/files":
            _Service.taken += _checked(_file_in(self.headers["Content-Type"], body))
            made = {"id": f"file-{_Service.taken}", "object": "file", "purpose": "fine-tune"}
        else:
            made = {"id": "job-1", "object": "fine_tuning.job", **json.loads(body)}
        data = json.dumps(made).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _file_in(kind: str, body: bytes) -> bytes:
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    parts = [part for part in form.walk() if part.get_filename()]
    data = parts[0].get_payload(decode=True)
    assert isinstance(data, bytes)
    return data


def _checked(data: bytes) -> int:
    """Return the lines of a file that keeps the rules of OpenAI's own types."""
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
    from pydantic import TypeAdapter

    messages = TypeAdapter(list[ChatCompletionMessageParam])
    tools = TypeAdapter(list[ChatCompletionToolParam])
    lines = [json.loads(line) for line in data.splitlines()]
    assert len(lines) >= FEWEST, f"{len(lines)} lines"
    for line in lines:
        assert set(line) == {"messages", "tools"}
        for checked in (
            messages.validate_python(line["messages"]),
            tools.validate_python(line["tools"]),
        ):
            json.dumps([dict(one) for one in checked], default=list)  # some are checked when read
    return len(lines)


def openai(made: dict[str, Any]) -> dict[str, Any]:
    """Return how many lines the service took."""
    assert made["job"].training_file == made["training"]
    return {"loaded": _Service.taken, "masks": "`weight`, by the service"}


def mistral(made: dict[str, Any]) -> dict[str, Any]:
    """Return how many lines of both sides Mistral's validator takes."""
    request, validator = made["ChatCompletionRequest"], made["validator"]
    kind = request[made["FinetuningMessage"]]
    others = [
        validator.validate_request(kind.model_validate(line))
        for line in lines_of("mistral", "eval")
    ]
    return {"loaded": len(made["checked"]) + len(others), "masks": "`weight`, by the service"}


def verifiers(made: dict[str, Any]) -> dict[str, Any]:
    """Return how many tasks there are, each with a prompt."""
    tasks = made["tasks"]
    assert all(task.data.prompt_text for task in tasks)
    return {"loaded": len(tasks), "sides": ["train"], "masks": "none: it samples its own answers"}

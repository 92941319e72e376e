"""The scripted model: a server on loopback that answers a program as the scripts say.

Every answer has token counts that no other has, hence a reading of them is right or wrong to the
digit.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from debrief.sessions.model import DeclaredTool, Usage
from tools.programs.definitions import Program, Script, Step, filled
from tools.programs.protocols import PROTOCOLS, Answer, Request, Said, SentCall, encoded

_REFUSAL: Mapping[str, Any] = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": "no answer"},
}
NO_SCRIPT = "title"
"""A request that offers no tools, or asks for a title: a program's own."""
_TITLE = re.compile(r"\AGenerate a [^.\n]*\btitle\b")


class RefusedError(Exception):
    """The provider refuses a request.

    Args:
        status: of HTTP.
        body: the error, as the provider words it.
        headers: besides the usual ones.
    """

    def __init__(
        self,
        status: int = 400,
        body: Mapping[str, Any] = _REFUSAL,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(status)
        self.status, self.body, self.headers = status, body, headers


class BrokenOffError(Exception):
    """The stream ends before the answer does.

    Args:
        answer: that the model began to give.
    """

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.id)
        self.answer = answer


class Exchange(Struct, frozen=True, kw_only=True):
    """One request of a program, and what it was sent."""

    at: datetime
    script: str
    model: str
    usage: Usage
    text: str
    calls: tuple[SentCall, ...]
    system: tuple[str, ...]
    said: tuple[Said, ...]
    tools: tuple[DeclaredTool, ...]
    results: dict[str, str]
    unoffered: tuple[str, ...] = ()
    """Tools that the script needs and the program did not offer: it has changed."""
    is_broken_off: bool = False
    """Half of the answer was sent, so that the program asked again."""


class ScriptedModel:
    """Plays the model for one program."""

    def __init__(self, program: Program, scripts: Mapping[str, Script], repository: Path) -> None:
        self.exchanges: list[Exchange] = []
        self._program = program
        self._scripts = scripts
        self._repository = repository
        self._lock = threading.Lock()
        self._broken_off: list[Step] = []
        """Steps whose first answer was not sent to its end."""

    def answer(self, request: Request, *, caches_writes: bool = True) -> Answer:
        """Return what the script says on a request, and note it down.

        Raises:
            RefusedError: the script has it refused.
            BrokenOffError: the script has the stream break off.
        """
        name, step = self._place(request)
        for path, text in step.meanwhile.items():
            (self._repository / path).write_text(text, encoding="utf-8")
        if step.fails:
            raise RefusedError
        with self._lock:
            number = len(self.exchanges) + 1
            usage = Usage(
                input=2000 + 13 * number,
                output=300 + 7 * number,
                cache_write=(400 + 3 * number) * caches_writes,
                cache_read=9000 + 17 * number,
            )
            calls = tuple(
                SentCall(f"call_{number:04}_{place}", tool.tool, filled(tool.input, values))
                for place, deed in enumerate(step.calls)
                for tool in [self._program.tools[deed.do]]
                for values in [deed.values(self._repository)]
            )
            answer = Answer(
                id=f"answer_{number:04}",
                text=step.text,
                calls=calls,
                usage=usage,
                reasoning=20 + number,
            )
            breaks_off = step.breaks_off and step not in self._broken_off
            offered = {tool.name for tool in request.tools}
            self.exchanges.append(
                Exchange(
                    at=datetime.now(UTC),
                    script=name,
                    model=request.model,
                    usage=usage,
                    text=step.text,
                    calls=calls,
                    system=tuple(request.system),
                    said=tuple(request.said),
                    tools=tuple(request.tools),
                    results=request.results,
                    unoffered=tuple({call.name for call in calls} - offered),
                    is_broken_off=breaks_off,
                )
            )
            if breaks_off:
                self._broken_off.append(step)
                raise BrokenOffError(answer)
        return answer

    def _place(self, request: Request) -> tuple[str, Step]:
        """Return the script whose prompt was said last, and the step that it is at."""
        last = request.said[-1].text if request.said else ""
        if not request.tools or _TITLE.match(last):
            return NO_SCRIPT, Step("Mending add()")
        for place in range(len(request.said) - 1, -1, -1):
            role, text = request.said[place]
            for name, script in self._scripts.items():
                if role == "user" and script.steps and script.prompt in text:
                    done = sum(said.role == "assistant" for said in request.said[place:])
                    return name, script.steps[min(done, len(script.steps) - 1)]
        return NO_SCRIPT, Step("There is nothing to do.")


class ServedModel(Protocol):
    """What answers the requests of a server."""

    def answer(self, request: Request, *, caches_writes: bool = True) -> Answer:
        """Return what is said to a request."""
        ...


class ModelServer(ThreadingHTTPServer):
    """Serves a model on loopback; use it as a context."""

    daemon_threads = True

    def __init__(self, model: ServedModel) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.model = model
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.errors: list[str] = []
        """Requests that could not be answered, each in a line."""
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of programs that hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        path = urlsplit(self.path).path
        protocol = next((protocol for protocol in PROTOCOLS if protocol.path.search(path)), None)
        body = self._body()
        if protocol is None:
            self.do_GET()
            return
        try:
            request = protocol.read(msgspec.json.decode(body), path)
            answer = self.server.model.answer(request, caches_writes=protocol.caches_writes)
            self._send(200, *encoded(protocol, answer, request))
        except BrokenOffError as broken:
            kind, whole = encoded(protocol, broken.answer, request)
            self._send(200, kind, whole[: len(whole) // 2], length=len(whole))
            self.close_connection = True
        except RefusedError as refusal:
            error = msgspec.json.encode(refusal.body)
            self._send(refusal.status, "application/json", error, refusal.headers)
        except (msgspec.DecodeError, KeyError, TypeError) as error:
            self.server.errors.append(f"{path}: {type(error).__name__}: {error}")
            self._send(400, "application/json", b'{"error": {"message": "not understood"}}')

    def do_GET(self) -> None:
        self._send(404, "application/json", b'{"error": {"message": "not here"}}')

    def do_HEAD(self) -> None:
        self.do_GET()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return body

    def _send(
        self,
        status: int,
        kind: str,
        body: bytes,
        headers: Mapping[str, str] = MappingProxyType({}),
        length: int | None = None,
    ) -> None:
        """Send an answer, or the beginning of one that is ``length`` bytes long."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing of each request."""

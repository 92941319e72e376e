"""A model's server on loopback that speaks OpenAI's protocol, well or badly as it is told."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal

from tests.waiting import LONG

Manner = Literal["whole", "cut", "hang", "close"]
LETTERS_A_TOKEN = 4
CACHED_BLOCK = 128


@dataclass
class Call:
    """A request as it came in."""

    number: int
    """From 1."""
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        """What the system messages say."""
        return "\n".join(_text(m) for m in self.body["messages"] if m["role"] == "system")

    @property
    def user(self) -> str:
        """What the other messages say."""
        return "\n".join(_text(m) for m in self.body["messages"] if m["role"] != "system")

    @property
    def digest(self) -> str:
        """The question's, whatever its number."""
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()


@dataclass
class Reply:
    """What is answered."""

    content: str | None = "Fine."
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    latency: float = 0.0
    manner: Manner = "whole"
    finish: str = "stop"
    raw: bytes | None = None
    """Instead of an answer in the protocol's form."""
    error: Mapping[str, Any] | None = None
    usage: Mapping[str, Any] | None = None
    """Instead of the counted usage; an empty one for none at all."""


def judged(score: object = 0.7, feedback: str = "Reuses `retry` from utils.") -> str:
    """Return a judge's answer."""
    return json.dumps({"feedback": feedback, "score": score})


@dataclass(frozen=True)
class Faults:
    """Shares of calls that go wrong, drawn by the call's number so that a run can be repeated."""

    busy: float = 0.0
    broken: float = 0.0
    hangs: float = 0.0
    garbage: float = 0.0
    retry_after: str = "0"
    seed: int = 1

    def of(self, call: Call) -> Reply | None:
        """Return the fault of a call, or None."""
        drawn = random.Random(f"{self.seed} {call.number}").random()
        faults = (
            (self.busy, Reply(status=429, headers={"retry-after": self.retry_after})),
            (self.broken, Reply(status=500)),
            (self.hangs, Reply(manner="hang")),
            (self.garbage, Reply(content="I would rather talk about the weather.")),
        )
        for share, fault in faults:
            if drawn < share:
                return fault
            drawn -= share
        return None


class OpenAIServer:
    """A server; use it as a context.

    Args:
        reply: what is answered to a call; a judge's answer by default.
    """

    def __init__(self, reply: Callable[[Call], Reply] | None = None) -> None:
        self.reply = reply or (lambda call: Reply(judged()))
        self.calls: list[Call] = []
        self.received = 0
        self.delivered: Counter[str] = Counter()
        """Usable answers that reached a client that was still there, by question."""
        self.most_answers: int | None = None
        """So many are given, and all others wait until it is raised; None gives them all."""
        self.at_once = 0
        self.most_at_once = 0
        self._given = 0
        self._seen: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._port = 0

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        assert self._ready.wait(LONG)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LONG)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        serving = asyncio.start_server(self._serve, "127.0.0.1", 0, limit=2**26, backlog=1024)
        server = self._loop.run_until_complete(serving)
        self._port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while call := await self._read(reader):
                self.at_once += 1
                self.most_at_once = max(self.most_at_once, self.at_once)
                try:
                    going_on = await self._answer(call, reader, writer)
                finally:
                    self.at_once -= 1
                if not going_on:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Call | None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in head[1:] if line)
        }
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.received += 1
        call = Call(self.received, head[0].split()[1], headers, json.loads(body))
        self.calls.append(call)
        return call

    async def _answer(
        self, call: Call, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        reply = self.reply(call)
        if reply.manner == "hang":
            await reader.read()
            return False
        await asyncio.sleep(reply.latency)
        while self.most_answers is not None and self._given >= self.most_answers:
            await asyncio.sleep(0.005)
        if reply.manner == "close" or reader.at_eof():
            return False
        self._given += 1
        body = reply.raw if reply.raw is not None else json.dumps(self._body(call, reply)).encode()
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        lines = [f"{name}: {value}" for name, value in {**headers, **reply.headers}.items()]
        head = "\r\n".join([f"HTTP/1.1 {reply.status} Said", *lines, "", ""]).encode()
        writer.write(head + (body[: len(body) // 2] if reply.manner == "cut" else body))
        await writer.drain()
        if reply.manner == "cut":
            return False
        if reply.status == 200 and reply.raw is None and "score" in (reply.content or ""):
            self.delivered[call.digest] += 1
        return True

    def _body(self, call: Call, reply: Reply) -> dict[str, Any]:
        if reply.status != 200 or reply.error is not None:
            return {"error": dict(reply.error or {"message": f"status {reply.status}"})}
        return {
            "id": f"chatcmpl-{call.number}",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": call.body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": reply.content},
                    "finish_reason": reply.finish,
                }
            ],
            "usage": dict(reply.usage) if reply.usage is not None else self._usage(call, reply),
        }

    def _usage(self, call: Call, reply: Reply) -> dict[str, Any]:
        prompt = f"{call.system}\n{call.user}"
        inputs, outputs = (len(t) // LETTERS_A_TOKEN for t in (prompt, reply.content or ""))
        shared = max((_shared(prompt, seen) for seen in self._seen), default=0) // LETTERS_A_TOKEN
        self._seen.append(prompt)
        return {
            "prompt_tokens": inputs,
            "completion_tokens": outputs,
            "total_tokens": inputs + outputs,
            "prompt_tokens_details": {"cached_tokens": shared // CACHED_BLOCK * CACHED_BLOCK},
        }


def _shared(one: str, other: str) -> int:
    """Return how many letters two texts begin with alike, by halving: they are long, and many."""
    alike, end = 0, min(len(one), len(other))
    while alike < end:
        middle = (alike + end + 1) // 2
        if one[alike:middle] == other[alike:middle]:
            alike = middle
        else:
            end = middle - 1
    return alike


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)

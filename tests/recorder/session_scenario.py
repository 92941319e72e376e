"""A shop's repository, a program called pnpm, and a server that answers as it is told to."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import structs

from debrief.recorder.checks import ReadyRule
from debrief.recorder.client import RETRIES, RecorderClient
from debrief.recorder.local_session import CommandEnd, NewSession, Started, StopOptions
from debrief.recorder.session import run, start
from debrief.recorder.state import RecorderHome
from debrief.recorder.stopping import Stopped, stop
from debrief.redaction import Redactor
from debrief.retry import RetryPolicy
from tests.http_server import LoopbackServer, Reply, Request
from tests.snapshots.scenario import repository, write
from tests.waiting import LONG

FILES = {
    "package.json": '{"name": "shop"}\n',
    "src/cart.ts": "export const cart = [];\nexport const total = 0;\n",
    "src/old.ts": "export {};\n",
}
REDACTOR = Redactor(b"a key of the tests, and no other's")
RULE = ReadyRule()
HASTE = structs.replace(RETRIES, attempts=3, first_wait=0.01, longest_wait=2.0)

PNPM = """#!/bin/sh
case "$1" in
  test) echo "2 passed"; echo "a warning" >&2; echo "done" ;;
  lint) echo "src/cart.ts: 1 problem"; exit 3 ;;
  build) echo "building"; sleep 600 & echo $! > "$SEEN"; wait ;;
  install) i=0; while [ $i -lt 30 ]; do echo "step $i"; i=$((i+1)); sleep 0.02; done ;;
  *) printf '%s\\n' "$@" ;;
esac
"""


class Shop(NamedTuple):
    """A clean worktree, and the recorder of this machine."""

    folder: Path
    home: RecorderHome

    def start(self, **given: Any) -> Started:
        new = NewSession(**{"task_id": "cart", "prompt": "Add a discount.", **given})
        return start(self.home, self.folder, new)

    def run(self, *command: str, folder: str = ".", **given: Any) -> CommandEnd:
        told = {"show": lambda piece: None, **given}
        return run(self.home, self.folder / folder, command, **told)

    def stop(
        self, to: RecorderClient | Path, options: StopOptions | None = None, **given: Any
    ) -> Stopped:
        given = {"redactor": REDACTOR, "rule": RULE, "options": options or StopOptions(), **given}
        return stop(self.home, self.folder, to, **given)

    def change(self) -> None:
        write(self.folder, {"src/cart.ts": "export const cart = [1];\nexport const total = 0;\n"})
        write(self.folder, {"src/discount.ts": "export const discount = 5;\n"})
        (self.folder / "src/old.ts").unlink()


def a_shop(folder: Path) -> Shop:
    return Shop(a_repository(folder / "shop"), RecorderHome(folder / "home"))


def a_repository(folder: Path) -> Path:
    """Return a repository with ``FILES`` as its only commit; a copy, as that is quicker."""
    shutil.copytree(_template(), folder)
    return folder


@cache
def _template() -> Path:
    place = Path(tempfile.mkdtemp(prefix="debrief-shop-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return repository(place / "shop", FILES)


def add_pnpm(folder: Path, script: str = PNPM) -> str:
    """Write the program; return a PATH that has it."""
    program = folder / "bin/pnpm"
    program.parent.mkdir(exist_ok=True)
    program.write_text(script)
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


class Clock:
    """Time that passes a second a look."""

    def __init__(self) -> None:
        self._now = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=1)
        return self._now


class Records:
    """What a server has: records by id, tasks, and how it is to answer next."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.records: dict[str, bytes] = {}
        self.tasks = {"cart"}
        self.ready: set[str] = set()
        self.asked: list[str] = []
        self.tokens: list[str | None] = []
        self.answers: list[tuple[int, Mapping[str, str], bytes]] = []
        """Given to the next requests, in order, before any is handled."""
        self.hang = threading.Event()
        self.hang.set()

    def client(self, policy: RetryPolicy = HASTE) -> RecorderClient:
        return RecorderClient(self.url, "a-token", policy)

    def handle(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        if method == "GET":
            task = path.removeprefix("/tasks/")
            if task in self.tasks:
                return 200, {"id": task, "name": task}
            return 404, {"place": f"task {task}", "reasons": ["does not exist"]}
        told = json.loads(body)
        if path == "/tasks":
            known = told["id"] in self.tasks
            self.tasks.add(told["id"])
            return (409, {"reasons": ["is there"]}) if known else (201, told)
        if method == "PATCH":
            self.ready.add(path.rsplit("/", 1)[1])
            return 200, {"status": "ready", "notReady": []}
        if told["taskId"] not in self.tasks:
            return 422, {"place": "taskId", "reasons": ["there is no such task", "make it first"]}
        record = body[body.index(b'"record":') + 9 : -1]
        known_bytes = self.records.setdefault(told["id"], record)
        if known_bytes != record:
            return 409, {"reasons": ["another record is stored under that id"]}
        digest = hashlib.sha256(record).hexdigest()
        return 201, {"id": told["id"], "sha256": digest, "status": "draft", "notReady": []}


@contextmanager
def records_server() -> Iterator[Records]:
    """Serve on loopback for the length of the block."""

    def answer(request: Request) -> Reply:
        served.asked.append(f"{request.method} {request.path}")
        served.tokens.append(request.headers["Authorization"])
        served.hang.wait(LONG)
        if served.answers:
            status, headers, data = served.answers.pop(0)
            return Reply(status, data, headers)
        status, told = served.handle(request.method, request.path, request.body)
        return Reply(status, json.dumps(told).encode())

    with LoopbackServer(answer) as server:
        served = Records(server.url)
        try:
            yield served
        finally:
            served.hang.set()

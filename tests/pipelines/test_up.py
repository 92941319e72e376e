"""``debrief up``, for real: everything starts, heals, and ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipelines.up import Ports
from tests.door.attacks import let_in
from tests.ports import free_port
from tests.waiting import is_over, wait_until


class Running:
    """A whole that was started on a home of its own."""

    def __init__(self, home: Path, **environment: str) -> None:
        self.home = home
        self.ports = free_ports()
        self.output = home.parent / "output"
        keep = ("PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH")
        self.environment = {
            **{name: os.environ[name] for name in keep if name in os.environ},
            "DEBRIEF_HOME": str(home),
            "DEBRIEF_NO_MODEL": "1",
            "DEBRIEF_SESSIONS": str(home.parent),
            "PYTHONUNBUFFERED": "1",
            **environment,
        }
        with self.output.open("w") as file:
            self.process = subprocess.Popen(
                self.command("up"), env=self.environment, stdout=file, stderr=subprocess.STDOUT
            )
        self.wait_for("Debrief is up")

    def command(self, *words: str) -> list[str]:
        command = [sys.executable, "-m", "pipelines.command", *words]
        if words == ("up",):
            command += ["--port", str(self.ports.web), "--api-port", str(self.ports.api)]
            command += ["--metrics-port", str(self.ports.metrics)]
        return command

    def wait_for(self, text: str) -> None:
        limit = time.monotonic() + 300
        while text not in self.output.read_text():
            assert self.process.poll() is None, self.output.read_text()
            assert time.monotonic() < limit, self.output.read_text()
            time.sleep(0.05)

    def get(self, port: int, path: str, body: object = None) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
            headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
            data = None if body is None else json.dumps(body)
            client.request("GET" if body is None else "POST", path, data, headers)
            answer = client.getresponse()
            return answer.status, answer.read()

    def family(self) -> list[psutil.Process]:
        """Everything that it runs."""
        return psutil.Process(self.process.pid).children(recursive=True)


def free_ports() -> Ports:
    ports = set[int]()
    while len(ports) < 3:
        ports.add(free_port())
    web, api, metrics = ports
    return Ports(web=web, api=api, metrics=metrics)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    whole = Running(tmp_path_factory.mktemp("up") / "home")
    yield whole
    if whole.process.poll() is None:
        whole.process.terminate()
        whole.process.wait(180)


def test_the_ui_the_pages_the_api_and_the_metrics_answer(running: Running) -> None:
    assert running.get(running.ports.web, "/dagster/server_info")[0] == 200
    assert running.get(running.ports.api, "/health")[0] == 200
    status, page = running.get(running.ports.web, "/")
    assert status == 200
    assert b'href="/dagster">Run things in Dagster' in page
    status, text = running.get(running.ports.metrics, "/metrics")
    found = {metric.name for metric in text_string_to_metric_families(text.decode())}
    assert status == 200
    assert {"debrief_runs", "debrief_rows", "debrief_recorder_sessions"} <= found


def test_the_ui_shows_the_assets_from_a_postgres_of_its_own(running: Running) -> None:
    query = "{assetNodes { assetKey { path } } instance { runsFeedCount: hasInfo info }}"
    status, answer = running.get(running.ports.web, "/dagster/graphql", {"query": query})
    told = json.loads(answer)["data"]
    assert status == 200
    assert {"path": ["training_sets"]} in [node["assetKey"] for node in told["assetNodes"]]
    assert "PostgresRunStorage" in told["instance"]["info"]


def test_a_page_of_another_site_starts_and_reads_nothing(running: Running) -> None:
    assert let_in(f"http://127.0.0.1:{running.ports.web}") == []


def test_a_second_one_on_the_same_home_is_refused_with_the_reason(running: Running) -> None:
    second = subprocess.run(
        running.command("up"), env=running.environment, capture_output=True, text=True
    )
    assert second.returncode == 1
    assert f"is in use: process {running.process.pid}" in second.stderr
    assert running.process.poll() is None


def test_a_killed_api_is_started_again(running: Running) -> None:
    (api,) = (p for p in running.family() if "serve" in words_of(p)[3:])
    api.send_signal(signal.SIGKILL)
    running.wait_for("api ended by signal 9; starting it again in 1 s")

    def answers() -> bool:
        with suppress(OSError):
            return running.get(running.ports.api, "/health")[0] == 200
        return False

    wait_until(answers)


def words_of(process: psutil.Process) -> list[str]:
    """The command of a process; nothing of one that has ended meanwhile."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def test_sigterm_ends_all_of_it(running: Running) -> None:
    family = running.family()
    postgres = [process for process in family if "postgres" in "".join(words_of(process)[:1])]
    running.process.terminate()
    assert running.process.wait(180) == 0
    assert running.output.read_text().endswith("Debrief is down.\n")
    assert postgres
    wait_until(lambda: all(is_over(process.pid) for process in family))
    assert not (running.home / "postgres" / "data" / "postmaster.pid").exists()


def test_a_port_that_is_taken_is_refused_before_anything_starts(tmp_path: Path) -> None:
    from debrief.errors import ConfigurationError
    from debrief.settings import load_settings
    from pipelines.up import up

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = load_settings({"DEBRIEF_HOME": str(tmp_path), "HOME": str(tmp_path)})
        with pytest.raises(ConfigurationError, match=r"cannot be listened on.*--port"):
            up(Ports(web=port), settings)
    assert not (tmp_path / "postgres").exists()

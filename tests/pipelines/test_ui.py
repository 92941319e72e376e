"""``debrief ui``, for real: it starts, looks after runs, and ends with all that it started."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from pipelines.jobs import range_tags
from tests.machine import clean_environment, keep_patterns
from tests.models.openai_server import OpenAIServer, Reply
from tests.pipelines.test_model_run import MODEL, answer
from tests.pipelines.test_run import WEEK, conversation, write
from tests.ports import free_port
from tests.postgres import database, in_dagster_schema
from tests.waiting import LONG, is_over, wait_until

DEPLOY = Path(__file__).parents[2] / "deploy"
LAUNCH = """
mutation Launch($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message } } }
"""
RUNS = "{ runsOrError { ... on Runs { results { runId status parentRunId } } } }"
STEPS = "query Of($run: ID!) { runOrError(runId: $run) { ... on Run { stepStats { stepKey } } } }"
CODE = {"repositoryLocationName": "debrief", "repositoryName": "__repository__"}


class Running:
    """A ``debrief ui`` on a home of its own."""

    def __init__(self, home: Path, *options: str, **environment: str) -> None:
        self.home = home
        self.port = free_port()
        self.output = home.parent / "output"
        keep_patterns(home)
        mine = {
            "HOME": str(home.parent),
            "DEBRIEF_HOME": str(home),
            "DEBRIEF_SESSIONS": str(home.parent / "transcripts"),
            "PYTHONUNBUFFERED": "1",
        }
        self.environment = clean_environment(**(mine | environment))
        self.start(*options)

    def start(self, *options: str) -> None:
        """Start it, be it once more, and wait until it answers."""
        with self.output.open("w") as file:
            self.process = subprocess.Popen(
                self.command("ui", "--port", str(self.port), *options),
                env=self.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )

        def has_started() -> bool:
            assert self.process.poll() is None, self.output.read_text()
            return "Dagster: run things" in self.output.read_text()

        wait_until(has_started)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pipelines.command", *words]

    def get(self, path: str, body: object = None) -> tuple[int, bytes]:
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as client:
            headers = {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
            data = None if body is None else json.dumps(body)
            client.request("GET" if body is None else "POST", path, data, headers)
            answered = client.getresponse()
            return answered.status, answered.read()

    def ask(self, query: str, **variables: object) -> Any:
        """Ask Dagster's server."""
        status, said = self.get("/dagster/graphql", {"query": query, "variables": variables})
        assert status == 200, said
        return json.loads(said)["data"]

    def launch(self) -> str:
        """Launch the whole graph over a week as the UI does; return the run's id."""
        tags = [{"key": key, "value": value} for key, value in range_tags(WEEK, WEEK).items()]
        selector = {**CODE, "jobName": "whole_graph"}
        params = {"selector": selector, "executionMetadata": {"tags": tags}}
        launched = self.ask(LAUNCH, params=params)["launchRun"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def states(self) -> dict[str, tuple[str, str | None]]:
        """Return each run's state, and the run that it repeats."""
        found = self.ask(RUNS)["runsOrError"]["results"]
        return {run["runId"]: (run["status"], run["parentRunId"]) for run in found}

    def family(self) -> list[psutil.Process]:
        """Return everything that it runs."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def find(self, word: str) -> psutil.Process:
        """Return the process of the family whose command has a word."""
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                if any(word in each for each in process.cmdline()):
                    return process
        raise AssertionError(f"no {word}")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(LONG)


@contextmanager
def running(home: Path, *options: str, **environment: str) -> Iterator[Running]:
    whole = Running(home, *options, **environment)
    try:
        yield whole
    finally:
        if whole.process.poll() is None:
            whole.stop()


def of_model(server: OpenAIServer) -> dict[str, str]:
    return {
        "DEBRIEF_MODEL": MODEL,
        "DEBRIEF_MODEL_BASE_URL": server.url,
        "DEBRIEF_REDACTION_KEY": "5a" * 32,
        "OPENAI_API_KEY": "sk-loopback",
    }


def configure(home: Path, kind: str, **monitoring: int) -> None:
    """Give the home's lake a ``dagster.yaml`` with another pace of run monitoring."""
    content = yaml.safe_load((DEPLOY / kind).read_text())
    content["run_monitoring"] |= monitoring
    folder = home / "lake" / ".dagster"
    folder.mkdir(parents=True)
    (folder / "dagster.yaml").write_text(yaml.safe_dump(content))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with transcripts of a week beside it."""
    (tmp_path / "transcripts").mkdir()
    write(tmp_path / "transcripts", "one.jsonl", conversation("one"))
    return tmp_path / "home"


@pytest.fixture
def slow() -> Iterator[OpenAIServer]:
    """A model that thinks for ever, until it is given another ``reply``."""
    with OpenAIServer(lambda call: Reply(manner="hang")) as server:
        yield server


def test_a_daemon_that_is_killed_ends_all_of_it_with_its_last_words(home: Path) -> None:
    with running(home, DEBRIEF_NO_MODEL="1") as whole:
        assert whole.get("/")[0] == whole.get("/dagster/server_info")[0] == 200
        family = whole.family()
        whole.find("dagster-daemon").kill()
        assert whole.process.wait(LONG) == 1
        wait_until(lambda: all(is_over(process.pid) for process in family))
        said = whole.output.read_text()
    assert re.search(
        r"debrief: daemon: ended by signal 9; its last lines:\n  .*dagster\.daemon", said
    )
    assert f"Its log is {home / 'logs' / 'daemon.log'}" in said.replace("\n", " ")


def test_its_programs_end_when_it_is_killed_itself(home: Path) -> None:
    with running(home, DEBRIEF_NO_MODEL="1") as whole:
        family = whole.family()
        assert family
        whole.process.kill()
        whole.process.wait(LONG)
        wait_until(lambda: all(is_over(process.pid) for process in family))


def test_a_public_one_without_a_login_says_who_can_read_it(home: Path) -> None:
    with running(home, "--public", DEBRIEF_NO_MODEL="1") as whole:
        said = " ".join(whole.output.read_text().split())
        assert "name its header in DEBRIEF_IDENTITY_HEADER" in said
        (listening,) = {
            each.laddr.ip
            for each in whole.find("pipelines.web").net_connections()
            if each.status == psutil.CONN_LISTEN
        }
    assert listening == "0.0.0.0"


@pytest.mark.parametrize("on_postgres", [False, True], ids=["sqlite", "postgres"])
def test_a_run_whose_process_is_killed_goes_on_as_another_from_where_it_was(
    home: Path, slow: OpenAIServer, on_postgres: bool, request: pytest.FixtureRequest
) -> None:
    with database(request.getfixturevalue("postgres_server"), "template0") as url:
        given = {"DAGSTER_DATABASE_URL": in_dagster_schema(url)} if on_postgres else {}
        kind = "dagster.yaml" if on_postgres else "dagster-local.yaml"
        configure(home, kind, poll_interval_seconds=1, free_slots_after_run_end_seconds=1)
        with running(home, **of_model(slow), **given) as whole:
            run = whole.launch()
            wait_until(lambda: slow.received)
            whole.find("spawn_main").kill()
            wait_until(lambda: whole.states()[run][0] == "FAILURE")
            slow.reply = answer
            wait_until(lambda: ("SUCCESS", run) in whole.states().values())
            (again,) = (each for each, (_, parent) in whole.states().items() if parent == run)
            steps = whole.ask(STEPS, run=again)["runOrError"]["stepStats"]
        assert "raw_sessions" not in {step["stepKey"] for step in steps}
        assert "session_scores" in {step["stepKey"] for step in steps}


def test_a_run_of_a_ui_that_was_killed_is_tried_again_by_the_next(
    home: Path, slow: OpenAIServer
) -> None:
    with running(home, **of_model(slow)) as whole:
        run = whole.launch()
        wait_until(lambda: slow.received)
        for pid in [*(process.pid for process in whole.family()), whole.process.pid]:
            os.kill(pid, signal.SIGKILL)
        whole.process.wait(LONG)
        slow.reply = answer
        whole.start()
        assert f"Killed earlier, now marked as failed: {run[:8]}" in whole.output.read_text()
        wait_until(lambda: ("SUCCESS", run) in whole.states().values())


def test_a_run_of_a_command_is_left_alone_and_marked_when_its_process_is_gone(
    home: Path, slow: OpenAIServer
) -> None:
    configure(home, "dagster-local.yaml", poll_interval_seconds=1, max_runtime_seconds=1)
    with running(home, **of_model(slow)) as whole:
        command = whole.command("run", "--week", WEEK, "--yes")
        first = subprocess.Popen(command, env=whole.environment, stdout=subprocess.DEVNULL)
        try:
            wait_until(lambda: slow.received)
            (run,) = (run for run, (state, _) in whole.states().items() if state == "STARTED")
            looked = whole.home / "logs" / "daemon.log"
            before = looked.read_text().count(run)
            wait_until(lambda: looked.read_text().count(run) > before + 3)
            assert whole.states()[run] == ("STARTED", None)
        finally:
            first.kill()
            first.wait(LONG)
        slow.reply = answer
        done = subprocess.run(command, env=whole.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert f"Killed earlier, now marked as failed: {run[:8]}" in done.stderr
        assert whole.states()[run] == ("FAILURE", None)

"""What the fault plan is carried out on: a daemon, its runs and its database, and ways to kill them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import psutil
import yaml

from debrief.lake import Lake
from debrief.recorder.postgres import EmbeddedPostgres
from debrief.state.postgres import PostgresState
from debrief.state.processes import decoded
from debrief.state.store import Lease
from pipelines.ranges import range_tags
from tests.benchmarks.fault_definitions import ASKING
from tests.benchmarks.generated import weeks_until
from tests.models.openai_server import OpenAIServer

ROOT = Path(__file__).parents[2]
MODULE = "tests.benchmarks.fault_definitions"
WEEKS = weeks_until("2026-03-30", 4)

CONCURRENCY = 8


class Stage:
    """All that runs, below one folder."""

    def __init__(self, top: Path, server: OpenAIServer) -> None:
        self.top = top
        self.lake = Lake(str(top / "lake"))
        self._server = server
        self._home = top / "dagster"
        self._home.mkdir(parents=True)
        self.postgres = EmbeddedPostgres(top / "postgres")
        shutil.copy(ROOT / "deploy" / "dagster.yaml", self._home / "dagster.yaml")
        workspace = {"load_from": [{"python_module": {"module_name": MODULE}}]}
        (self._home / "workspace.yaml").write_text(yaml.safe_dump(workspace))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))},
            "DAGSTER_HOME": str(self._home),
            "DAGSTER_DATABASE_URL": self.postgres.url,
            "DEBRIEF_HOME": str(top / "home"),
            "DEBRIEF_LAKE": self.lake.url,
            "DEBRIEF_LANGFUSE": "off",
            "DEBRIEF_STATE_URL": self.postgres.url,
            "DEBRIEF_MODEL": "openai/tiny",
            "DEBRIEF_MODEL_BASE_URL": server.url,
            "DEBRIEF_CONCURRENCY": str(CONCURRENCY),
            "DEBRIEF_TIMEOUT": "5",
            "OPENAI_API_KEY": "sk-loopback",
        }
        self.state = PostgresState(self.postgres.url)
        self._log = (top / "daemon.log").open("ab")
        self.daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the daemon, as a supervisor does."""
        command = ["-m", "dagster._daemon", "run", "-w", str(self._home / "workspace.yaml")]
        self.daemon = subprocess.Popen(
            [sys.executable, *command],
            env=self.environment,
            cwd=ROOT,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )

    def launch(self) -> None:
        """Launch the job over all weeks, as a person does."""
        tags = json.dumps(range_tags(WEEKS[0], WEEKS[-1]))
        words = ["-m", "dagster", "job", "launch", "-j", "asking", "--tags", tags]
        subprocess.run(
            [sys.executable, *words, "-w", str(self._home / "workspace.yaml")],
            env=self.environment,
            cwd=ROOT,
            check=True,
            capture_output=True,
        )

    @contextmanager
    def instance(self) -> Iterator[dg.DagsterInstance]:
        """Open Dagster's instance in this process."""
        os.environ["DAGSTER_DATABASE_URL"] = self.postgres.url
        with dg.DagsterInstance.from_config(str(self._home)) as instance:
            yield instance

    def leases(self) -> list[Lease]:
        """Return the leases on weeks."""
        return [
            lease
            for table in ASKING
            for week in WEEKS
            if (lease := self.state.lease(f"{table} {week} of {self.lake.url}")) is not None
        ]

    def steps(self) -> list[psutil.Process]:
        """Return the processes of the steps that hold leases."""
        found = {
            process.number
            for lease in self.leases()
            if (process := decoded(lease.process)) is not None and not process.is_gone
        }
        return [psutil.Process(number) for number in sorted(found)]

    def everything(self) -> list[psutil.Process]:
        """Return the daemon and all below it, and what outlived one before it."""
        mark = str(self._home)
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("DAGSTER_HOME") == mark:
                    found.append(process)
            except psutil.Error:
                continue
        return [process for process in found if process.pid != os.getpid()]

    def restart_postgres(self) -> None:
        """Stop the server as its service does, and start it again."""
        self.postgres.close()
        self.postgres = EmbeddedPostgres(self.top / "postgres")

    def end(self) -> None:
        """End all of it."""
        for process in self.everything():
            _kill(process)
        self.state.close()
        self.postgres.close()
        self._log.close()


def _kill(process: psutil.Process) -> None:
    try:
        process.send_signal(signal.SIGKILL)
    except psutil.NoSuchProcess:
        return


def kill_step(stage: Stage) -> None:
    """Kill the processes of the steps; their run fails, and a person launches it again."""
    for step in stage.steps():
        _kill(step)
    stage.launch()


def kill_worker(stage: Stage) -> None:
    """Kill the run's worker above the steps."""
    for worker in {step.parent() for step in stage.steps()}:
        if worker is not None:
            _kill(worker)


def kill_daemon(stage: Stage) -> None:
    """Kill the daemon alone; it is started again."""
    assert stage.daemon is not None
    stage.daemon.kill()
    stage.daemon.wait()
    stage.start()


def kill_tree(stage: Stage) -> None:
    """Kill all there is; the daemon is started again."""
    for process in stage.everything():
        _kill(process)
    assert stage.daemon is not None
    stage.daemon.wait()
    stage.start()


def restart_postgres(stage: Stage) -> None:
    """Restart the database that all of it stands on."""
    stage.restart_postgres()


PLAN: dict[str, Callable[[Stage], None]] = {
    "the step": kill_step,
    "the run worker": kill_worker,
    "the daemon": kill_daemon,
    "Postgres (restarted)": restart_postgres,
    "the whole tree": kill_tree,
}
REPLACED = ("the step", "the run worker", "the whole tree")
"""After which other processes do the work: it starts again with a new lease."""

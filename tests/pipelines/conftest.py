from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
import pytest
from msgspec import Struct
from typer.testing import CliRunner

import pipelines.command  # noqa: F401  (adds its commands)
from debrief.cli.app import app
from debrief.lake import Lake
from tests.machine import clean_environment, keep_patterns

SECONDS = 1_200
ELSEWHERE = (
    "DAGSTER_HOME",
    "DEBRIEF_LAKE",
    "DEBRIEF_MODEL",
    "DEBRIEF_NO_MODEL",
    "DEBRIEF_SESSIONS",
)
"""What would lead a command away from the machine that it is typed on."""


class Said(Struct, frozen=True):
    code: int
    out: str
    err: str

    @property
    def all(self) -> str:
        return self.out + self.err


class Home(Struct, frozen=True):
    """A machine of its own: nothing of the person who runs the tests is read or written."""

    path: Path

    def debrief(self, *arguments: str, **environment: str) -> Said:
        keep_patterns(self.path / ".debrief")
        return run_command([*_COMMAND, *arguments], self.environment(**environment))

    def typed(self, *arguments: str, **environment: str) -> Said:
        """Carry out a command in this process, which has imported everything already."""
        keep_patterns(self.path / ".debrief")
        kept = dict(os.environ)
        mine = {
            "HOME": str(self.path),
            "DEBRIEF_HOME": str(self.path / ".debrief"),
            "DEBRIEF_LANGFUSE": "off",
            **dict.fromkeys(ELSEWHERE, ""),
            **environment,
        }
        try:
            done = CliRunner().invoke(app, list(arguments), env=mine)
        finally:
            os.environ.clear()
            os.environ.update(kept)
        return Said(done.exit_code, done.stdout, done.stderr)

    def environment(self, **more: str) -> dict[str, str]:
        kept = clean_environment()
        for name in ("LANGFUSE_HOST", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"):
            kept.pop(name, None)
        return {**kept, "HOME": str(self.path), "DEBRIEF_HOME": str(self.path / ".debrief"), **more}

    @property
    def demo_lake(self) -> Lake:
        return Lake(str(self.path / ".debrief" / "demo"))


def only_line(said: Said) -> str:
    """Return what the command says of its failure, beside the lines of its progress."""
    assert said.code == 1, said.all
    assert "Traceback" not in said.all
    lines = [line for line in said.err.splitlines() if not line.startswith("  ")]
    assert len(lines) == 1, said.err
    return lines[0]


_COMMAND = (sys.executable, "-m", "pipelines.command")


def run_command(command: Sequence[str], environment: dict[str, str]) -> Said:
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@contextmanager
def history_of(lake: Path) -> Iterator[dg.DagsterInstance]:
    """The instance of a lake, as Dagster's own programs open it."""
    with pytest.MonkeyPatch.context() as here:
        here.setenv("DAGSTER_HOME", str(lake / ".dagster"))
        with dg.DagsterInstance.get() as instance:
            yield instance


class Demo(Struct, frozen=True):
    """``debrief demo`` typed twice on a fresh machine, at first in a process of its own."""

    home: Home
    first: Said
    second: Said
    before: dict[str, bytes]
    """The files of the lake after the first run, by name."""
    after: dict[str, bytes]

    @property
    def lake(self) -> Lake:
        return self.home.demo_lake


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    home = Home(tmp_path_factory.mktemp("machine"))
    first = home.debrief("demo")
    before = _files(home)
    second = home.typed("demo")
    return Demo(home, first, second, before, _files(home))


def _files(home: Home) -> dict[str, bytes]:
    top = home.path / ".debrief" / "demo"
    return {
        str(path.relative_to(top)): path.read_bytes()
        for path in sorted(top.rglob("*"))
        if path.is_file() and ".dagster" not in path.parts
    }

"""What benchmarks share: options, clean environments, times of tasks and of processes, tables."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.machine import clean_environment

PROJECT = Path(__file__).parents[2]
DEBRIEF = (sys.executable, "-m", "pipelines.command")


class Cost(Struct, frozen=True):
    """What a process with its children took: seconds, and MB of memory."""

    cpu: float
    wall: float
    peak: int

    def __str__(self) -> str:
        return f"{self.cpu:.1f} CPU s, {self.wall:.1f} s, {self.peak} MB"


def options(description: str | None, *positional: str, **defaults: Any) -> argparse.Namespace:
    """Read the command line: an option for each default, of its type."""
    parser = argparse.ArgumentParser(description=description)
    for name in positional:
        parser.add_argument(name)
    for name, value in defaults.items():
        kind: dict[str, Any] = {"type": type(value), "default": value}
        parser.add_argument(f"--{name}", **({"action": "store_true"} if value is False else kind))
    return parser.parse_args()


def run_alone(command: Iterable[str], home: Path, **variables: str) -> Cost:
    """Run a command as if on a machine of its own and return what it took.

    It may keep compiled modules, as Python does by default; run once before to have them.

    Raises:
        SystemExit: it failed.
    """
    home.mkdir(parents=True, exist_ok=True)
    places = {"HOME": str(home), "DEBRIEF_HOME": str(home / ".debrief"), "DEBRIEF_LANGFUSE": "off"}
    places["PYTHONDONTWRITEBYTECODE"] = ""
    words, started = list(command), time.monotonic()
    with (home / "output.log").open("wb") as output:
        process = subprocess.Popen(
            words,
            cwd=PROJECT,
            env=clean_environment(**places, **variables),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        text = (home / "output.log").read_text()
        raise SystemExit(f"{' '.join(words)} failed:\n{text[-2_000:]}")
    cpu, wall = used.ru_utime + used.ru_stime, time.monotonic() - started
    return Cost(cpu, wall, used.ru_maxrss // 1024)


def seconds(task: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return how long a task takes."""
    began = clock()
    task()
    return clock() - began


def show(name: str, figure: object) -> None:
    """Print a line of a table."""
    print(f"{name:<62} {figure}", flush=True)

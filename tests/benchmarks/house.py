"""The bars of the house: its size, how many modules a session passes, what a run costs.

``python -m tests.benchmarks.house`` prints the table; ``--quick`` leaves out what takes minutes;
``--sessions DIR`` names the transcripts that a run is timed on, by default the bundled samples.
CPU times are of the whole process with its children, on this machine: compare them with those of
another commit on the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

import debrief

PROJECT = Path(__file__).parents[2]
ROOMS = ("assets", "debrief", "pipelines", "resources")
SAMPLES = Path(debrief.__file__).parent / "samples" / "data"
_PRIVATE = re.compile(r"^\s*(?:from|import) dagster[\w.]*\._", re.MULTILINE)
_ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_COPIES = 10
_WALKED = (500_000, 640_000)
"""Bytes of the transcript whose way is followed."""


class Cost(Struct, frozen=True):
    """What a process took."""

    cpu: float
    """Seconds."""
    wall: float
    """Seconds."""
    peak: int
    """MB of memory."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=Path, default=SAMPLES)
    parser.add_argument("--quick", action="store_true", help="only what is read from the code")
    chosen = parser.parse_args()
    for name, value in rows(chosen.sessions, quick=chosen.quick):
        print(f"{name:<62} {value}", flush=True)


def rows(sessions: Path, *, quick: bool) -> Iterator[tuple[str, str]]:
    """Yield the name and figure of each bar."""
    yield "source lines of product Python (≤ 34,000)", f"{_source_lines():,}"
    yield "modules of product Python", f"{len(list(_files(*ROOMS))):,}"
    yield "private Dagster imports (0)", str(_private_imports())
    tests = sum(len(file.read_text().splitlines()) for file in _files("tests"))
    yield "lines of test code (≤ 38,000)", f"{tests:,}"
    if quick:
        return
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        walked = _walk(sessions, scratch)
        yield "modules from transcript to training line (≤ 70)", str(walked["line"])
        yield "modules of langfuse_scores without a server (≤ 10)", str(walked["langfuse_scores"])
        first = _run(scratch, "a", "--sessions", str(sessions))
        again = _run(scratch, "a", "--sessions", str(sessions))
        yield "debrief run --offline, first (≤ 45 CPU s, ≤ 350 MB)", _shown(first)
        yield "debrief run --offline, unchanged (≤ 8 CPU s)", _shown(again)
        yield "debrief demo (≤ 12 CPU s)", _shown(_measure(scratch / "demo", "demo"))
        size = _copies(sessions, scratch / "many")
        many = _run(scratch, "b", "--sessions", str(scratch / "many"))
        yield f"debrief run --offline on {size / 1e9:.2f} GB (≤ 450 MB)", _shown(many)


def _files(*rooms: str) -> Iterator[Path]:
    return (file for room in rooms for file in sorted((PROJECT / room).rglob("*.py")))


def _source_lines() -> int:
    from radon.raw import analyze

    return sum(analyze(file.read_text()).sloc for file in _files(*ROOMS))


def _private_imports() -> int:
    return sum(len(_PRIVATE.findall(file.read_text())) for file in _files(*ROOMS))


def _walk(sessions: Path, scratch: Path) -> dict[str, int]:
    """Return how many modules a session passes in a run over it alone."""
    low, high = _WALKED
    files = sorted(file for file in sessions.rglob("*.jsonl") if file.is_file())
    fitting = [file for file in files if low <= file.stat().st_size <= high]
    file = (fitting or sorted(files, key=lambda each: each.stat().st_size, reverse=True))[0]
    folder = scratch / "one" / "project"
    folder.mkdir(parents=True)
    (folder / file.name).write_bytes(file.read_bytes())
    home = scratch / "walk"
    arguments = [str(folder.parent), str(home / "lake"), str(home / "modules.json")]
    _measured([sys.executable, "-m", "tests.benchmarks.house_walk", *arguments], home)
    found: dict[str, int] = json.loads((home / "modules.json").read_text())
    return found


def _run(scratch: Path, name: str, *options: str) -> Cost:
    home = scratch / name
    return _measure(home, "run", "--offline", "--lake", str(home / "lake"), *options)


def _measure(home: Path, *arguments: str) -> Cost:
    return _measured([sys.executable, "-m", "pipelines.command", *arguments], home)


def _measured(command: list[str], home: Path) -> Cost:
    """Run a command on a machine of its own and return what it took.

    Raises:
        SystemExit: it failed.
    """
    home.mkdir(parents=True, exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DEBRIEF_", "DAGSTER_"))}
    environment = {**kept, "HOME": str(home), "DEBRIEF_HOME": str(home / ".debrief")}
    log = home / "output.log"
    started = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text()[-2_000:]}")
    cpu, wall = used.ru_utime + used.ru_stime, time.monotonic() - started
    return Cost(cpu, wall, used.ru_maxrss // 1024)


def _shown(cost: Cost) -> str:
    return f"{cost.cpu:.1f} CPU s, {cost.wall:.1f} s, {cost.peak} MB"


def _copies(sessions: Path, folder: Path) -> int:
    """Write several copies of all transcripts with ids of their own; return their bytes."""
    size = 0
    for copy in range(_COPIES):
        space = uuid.UUID(int=copy)

        def other(match: re.Match[bytes], space: uuid.UUID = space) -> bytes:
            return str(uuid.uuid5(space, match[0].decode())).encode()

        for file in sessions.rglob("*"):
            if file.is_file():
                name = _ID.sub(other, str(file.relative_to(sessions)).encode()).decode()
                target = folder / str(copy) / name
                target.parent.mkdir(parents=True, exist_ok=True)
                size += target.write_bytes(_ID.sub(other, file.read_bytes()))
    return size


if __name__ == "__main__":
    main()

"""What recording and verifying a change costs against git's own ``add -A`` and ``diff`` of it.

``python -m tests.benchmarks.recording`` makes a repository of 10,000 files, changes 20 of them,
and measures side by side: ``git add -A`` and ``git diff`` on a copy of it, and the recording of
the change with its verification, as ``debrief record stop`` does. Prints medians and the ratio.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from debrief.recorder.assembly import build_record
from debrief.recorder.changes import snapshot_tree, uncommitted_paths
from debrief.recorder.contracts import Record
from debrief.redaction import Redactor
from tests.benchmarks.round_trip import facts, run

REDACTOR = Redactor(b"benchmark" * 4)
LINES = 60


def main() -> None:
    """Print every figure."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--files", type=int, default=10_000)
    options.add_argument("--changed", type=int, default=20)
    options.add_argument("--rounds", type=int, default=15)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        work, copy = Path(folder) / "work", Path(folder) / "copy"
        base = repository(work, chosen.files)
        change(work, chosen.files, chosen.changed)
        shutil.copytree(work, copy, symlinks=True)
        run(copy, "update-index", "--refresh", "-q", allowed=(0, 1))
        pristine = (copy / ".git" / "index").read_bytes()
        build_record(work, facts(base), REDACTOR)
        plain: list[float] = []
        recorded: list[float] = []
        snapshots: list[float] = []
        starts: list[float] = []
        for _ in range(chosen.rounds):
            forget_objects(copy, pristine)
            plain.append(seconds(lambda: add_and_diff(copy, base)))
            recorded.append(seconds(lambda: record_once(work, base)))
            snapshots.append(seconds(lambda: snapshot_tree(work)))
            starts.append(seconds(lambda: uncommitted_paths(work)))
        print(f"files {chosen.files:,}, of them changed {chosen.changed}, rounds {chosen.rounds}")
        ordinary = statistics.median(plain)
        print(f"git add -A, git diff      {ordinary * 1000:7.1f} ms")
        for name, measured in (
            ("recorded and verified", recorded),
            ("snapshot_tree", snapshots),
            ("uncommitted_paths", starts),
        ):
            middle = statistics.median(measured)
            print(f"{name:25} {middle * 1000:7.1f} ms  {middle / ordinary:.2f} times")


def repository(work: Path, files: int) -> str:
    """Make a repository of ``files`` files in folders of 100; return its commit."""
    run(work.parent, "init", "--quiet", str(work))
    run(work, "config", "gc.auto", "0")
    for number in range(files):
        path = file_of(work, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"value_{number}_{line} = {line}\n" for line in range(LINES)))
    run(work, "add", "--all")
    run(work, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "base")
    run(work, "gc", "--quiet")
    time.sleep(1.1)
    run(work, "update-index", "--refresh", "-q", allowed=(0, 1))
    file_of(work, 0).touch()
    run(work, "status", "--short")
    return run(work, "rev-parse", "HEAD").strip()


def change(work: Path, files: int, changed: int) -> None:
    """Change files evenly over the repository: most updated, some created, some deleted."""
    for number in range(changed):
        path = file_of(work, number * files // changed)
        if number % 10 == 8:
            path.unlink()
        elif number % 10 == 9:
            path.with_name(f"new_{number}.py").write_text("print('new')\n" * LINES)
        else:
            lines = path.read_text().splitlines()
            lines[LINES // 2] = f"changed = {number}"
            path.write_text("\n".join(lines) + "\n")


def file_of(work: Path, number: int) -> Path:
    """Return the path of the file with a number."""
    return work / f"package_{number // 1000}" / f"part_{number // 100}" / f"module_{number}.py"


def forget_objects(copy: Path, index: bytes) -> None:
    """Take back what ``git add`` did, so that it has the same to do again."""
    (copy / ".git" / "index").write_bytes(index)
    for folder in (copy / ".git" / "objects").glob("[0-9a-f][0-9a-f]"):
        shutil.rmtree(folder)


def add_and_diff(copy: Path, base: str) -> None:
    """Do what a person would."""
    for arguments in (["add", "--all"], ["diff", "--cached", base]):
        subprocess.run(["git", *arguments], cwd=copy, stdout=subprocess.PIPE, check=True)


def record_once(work: Path, base: str) -> Record:
    """Record the change, with redaction and verification."""
    record = build_record(work, facts(base), REDACTOR)
    if not record.meta.verified:
        raise SystemExit(f"not verified: {record.meta.warnings}")
    return record


def seconds(task: Callable[[], object]) -> float:
    """Return how long a task takes."""
    began = time.perf_counter()
    task()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

"""A weekly run over unchanged sessions, and backfills of a year: ``python -m tests.benchmarks.weekly``.

Every figure is a real command in a process of its own, its start included, and is printed with
its ratio to the bare start of the same command (``debrief backfill`` of nothing due), and with the
processor time that it took, which tells more on a busy machine.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pipelines.schedules import LATE_WEEKS
from tests.benchmarks.generated import weeks_until, write_sessions

LAST = "2026-11-09"


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser()
    options.add_argument("--sessions", type=int, default=1_000)
    options.add_argument("--weeks", type=int, default=52)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        recent, year = top / "recent", top / "year"
        write_sessions(recent, weeks_until(LAST, LATE_WEEKS + 1), chosen.sessions)
        write_sessions(year, weeks_until(LAST, chosen.weeks), 10 * chosen.weeks)
        _told("first run", _seconds(top, "run", recent), None)
        start = _seconds(top, "backfill --stage session_scores", recent)
        _told("nothing due (the start alone)", start, start)
        _told(f"weekly run, {chosen.sessions} unchanged", _seconds(top, "run", recent), start)
        for stage in ("raw_sessions", "session_metadata", "session_scores", "judge_evaluations"):
            told = f"backfill of {stage}, {chosen.weeks} weeks"
            _told(told, _seconds(top, f"backfill --stage {stage}", year), start)


def _seconds(top: Path, words: str, sessions: Path) -> tuple[float, float]:
    """Return the seconds of a command, and of the processor."""
    lake = top / f"lake-{sessions.name}"
    command = [sys.executable, "-m", "pipelines.command", *words.split(), "--offline"]
    command += ["--sessions", str(sessions), "--lake", str(lake)]
    began, busy = time.perf_counter(), _busy()
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        env={**os.environ, "DEBRIEF_HOME": str(top / "home"), "DEBRIEF_LANGFUSE": "off"},
    )
    return time.perf_counter() - began, _busy() - busy


def _busy() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _told(what: str, took: tuple[float, float], start: tuple[float, float] | None) -> None:
    ratio = f"{took[0] / start[0]:6.1f} × the start" if start else ""
    print(f"{what:44} {took[0]:7.1f} s  {took[1]:6.1f} CPU s  {ratio}", flush=True)


if __name__ == "__main__":
    main()

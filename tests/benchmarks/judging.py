"""What judging costs: calls at once against a slow server, and again with a warm cache.

``python -m tests.benchmarks.judging [--calls 1000] [--concurrency 64] [--latency 2]``
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from debrief.judging.evaluation import evaluate_week
from debrief.judging.judge_files import load_judges
from debrief.judging.model import JudgeEvaluation
from debrief.sessions.model import Message, Session, ToolCall, Turn

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
JUDGES = Path(__file__).parents[2] / "judges"


def session_of(number: int) -> Session:
    """Return a session with four edits, about 6 kB of changes."""
    patch = "@@ -1,3 +1,43 @@\n import os\n" + "".join(
        f"+def helper_{number}_{line}(): return {line}\n" for line in range(40)
    )
    calls = tuple(
        ToolCall(
            id=f"c{at}", name="Edit", input="{}", result="done", status="ok",
            path=f"/home/ada/shop/module_{at}.py", patch=patch, added=40,
        )
        for at in range(4)
    )  # fmt: skip
    answer = Message(id="m1", model="m", text="Done.", calls=calls)
    prompt = f"Add helpers {number} to the shop. " + "Keep it short. " * 40
    return Session(
        id=f"s{number}", source="claude-code", tool="claude-code", task="shop",
        cwd="/home/ada/shop", started=START, ended=START, digest=f"digest {number}",
        turns=(Turn(number=1, prompt=prompt, messages=(answer,)),),
    )  # fmt: skip


def cpu() -> float:
    """Return the seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def judge_all(
    home: Path,
    url: str,
    sessions: int | range,
    concurrency: int,
    previous: Iterable[JudgeEvaluation] = (),
    **settings: str,
) -> list[JudgeEvaluation]:
    """Judge so many sessions by both of the project's judges, as the graph does."""
    from debrief.evaluators import make_evaluators
    from debrief.settings import load_settings

    environment = {
        "DEBRIEF_HOME": str(home),
        "DEBRIEF_MODEL_BASE_URL": url,
        "DEBRIEF_CONCURRENCY": str(concurrency),
        "DEBRIEF_JUDGES": str(JUDGES),
        **settings,
    }
    numbers = range(sessions) if isinstance(sessions, int) else sessions
    evaluators = make_evaluators(load_settings(environment), offline=False, model="openai/bench")
    rows = evaluate_week(
        (session_of(number) for number in numbers),
        evaluators.judges,
        evaluators.change_judge,
        evaluators.eval_fingerprint,
        previous,
        concurrency=evaluators.concurrency,
    )
    return list(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=2.0)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    judges = len(load_judges(JUDGES))
    sessions = asked.calls // judges
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.models.openai_server", "--latency", str(asked.latency)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            start, used = time.monotonic(), cpu()
            judge_all(Path(folder, "first"), url, 1, 1)
            print(f"first call, imports included: {cpu() - used:.1f} CPU s "
                  f"({time.monotonic() - start - judges * asked.latency:.1f} s over the latency)")  # fmt: skip
            home = Path(folder, "home")
            profile = cProfile.Profile()
            start, used = time.monotonic(), cpu()
            rows = judge_all(home, url, sessions, asked.concurrency)
            took, burnt = time.monotonic() - start, cpu() - used
            assert all(row.status == "ok" for row in rows), rows[0].failure
            ideal = len(rows) * asked.latency / asked.concurrency
            print(f"{len(rows)} calls at {asked.concurrency}: {took:.1f} s, ideal {ideal:.1f} s, "
                  f"ratio {took / ideal:.3f}; {burnt / len(rows) * 1000:.2f} ms CPU a call")  # fmt: skip
            start, used = time.monotonic(), cpu()
            if asked.profile:
                profile.enable()
            again = judge_all(home, url, sessions, 1)
            profile.disable()
            took, burnt = time.monotonic() - start, cpu() - used
            assert again == rows
            print(f"warm cache: {took / len(rows) * 1000:.2f} ms, "
                  f"{burnt / len(rows) * 1000:.2f} ms CPU a judgement")  # fmt: skip
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"peak memory {peak:.0f} MB")
            if asked.profile:
                pstats.Stats(profile).sort_stats("cumtime").print_stats(25)
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()

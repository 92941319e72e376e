"""Judging while the server fails in every way and the run is killed three times.

``python -m tests.benchmarks.judging_faults [--sessions 1000] [--concurrency 64]``
"""

from __future__ import annotations

import argparse
import hashlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from msgspec import Struct, structs

from debrief.judging.model import JudgeEvaluation
from debrief.lake import Lake
from debrief.models.language_model import PAUSE
from tests.benchmarks.judging import judge_all
from tests.models.openai_server import Call, Faults, OpenAIServer, Reply, judged

TABLE = "judge_evaluations"
MODULE = "tests.benchmarks.judging_faults"
JUDGES = 2
WEEKS = 4
FAULTS = Faults(busy=0.20, broken=0.05, hangs=0.02, garbage=0.03)
ROOT = Path(__file__).parents[2]


class Outcome(Struct, frozen=True, kw_only=True):
    """How it ended."""

    rows: list[JudgeEvaluation]
    kills: int
    finished: int
    """Usable answers that reached the run, each question counted once."""
    repeated: int
    """Usable answers beyond the first to one question."""
    received: int
    seconds: float


def run_once(
    folder: Path, url: str, sessions: int, concurrency: int, timeout: float, pause: float
) -> None:
    """Judge all sessions, a fourth of them a week, and write each week; one run of the graph."""
    lake = Lake(str(folder / "lake"))
    size = sessions // WEEKS
    for week in range(WEEKS):
        rows = judge_all(
            folder / "home",
            url,
            range(week * size, (week + 1) * size),
            concurrency,
            list(lake.read(TABLE, f"week{week}", JudgeEvaluation)),
            DEBRIEF_TIMEOUT=str(timeout),
            DEBRIEF_RETRY_PAUSE=str(pause),
        )
        lake.write(TABLE, f"week{week}", rows, JudgeEvaluation)


def all_rows(folder: Path) -> list[JudgeEvaluation]:
    """Return what the lake holds, what a call took left out."""
    lake = Lake(str(folder / "lake"))
    return [
        structs.replace(row, input_tokens=0, output_tokens=0, cost_usd=None)
        for week in lake.partitions(TABLE)
        for row in lake.read(TABLE, week, JudgeEvaluation)
    ]


def score_of(call: Call) -> Reply:
    """Give each session and judge a score of its own, always the same."""
    session = re.search(r"Add helpers (\d+)", call.user)
    judge = re.search(r"# (Code reuse|Plan compliance)", call.system)
    assert session
    assert judge
    score = hashlib.sha256(f"{session[1]} {judge[1]}".encode()).digest()[0] / 255
    return Reply(judged(round(score, 3), f"{judge[1]} of {session[1]}."))


def judge_under_faults(
    folder: Path,
    *,
    sessions: int,
    concurrency: int,
    latency: float,
    timeout: float,
    pause: float,
    kills: int,
    faults: Faults = FAULTS,
) -> Outcome:
    """Run until done; kill the run with SIGKILL each time another share of the calls came in."""

    def reply(call: Call) -> Reply:
        return structs_with(faults.of(call) or score_of(call), latency)

    expected = sessions * JUDGES
    start = time.monotonic()
    with OpenAIServer(reply) as server:
        server.keep_calls = False
        arguments = (folder, server.url, sessions, concurrency, timeout, pause)
        command = [sys.executable, "-m", MODULE, "--run", *map(str, arguments)]
        for round_ in range(kills + 1):
            run = subprocess.Popen(command, cwd=ROOT)
            limit = expected * (round_ + 1) // (kills + 1)
            while run.poll() is None:
                if round_ < kills and len(server.delivered) >= limit:
                    run.send_signal(signal.SIGKILL)
                    break
                time.sleep(0.01)
            code = run.wait()
            assert code == (-signal.SIGKILL if round_ < kills else 0), code
        return Outcome(
            rows=all_rows(folder),
            kills=kills,
            finished=len(server.delivered),
            repeated=sum(server.delivered.values()) - len(server.delivered),
            received=server.received,
            seconds=time.monotonic() - start,
        )


def structs_with(reply: Reply, latency: float) -> Reply:
    """Return a reply that takes its time."""
    from dataclasses import replace

    return replace(reply, latency=latency)


def main() -> None:
    """Measure and print, or be one run."""
    if sys.argv[1:2] == ["--run"]:
        folder, url, sessions, concurrency, timeout, pause = sys.argv[2:8]
        numbers = int(sessions), int(concurrency), float(timeout), float(pause)
        run_once(Path(folder), url, *numbers)
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5)
    parser.add_argument("--timeout", type=float, default=5.0)
    asked = parser.parse_args()
    measures = {
        "sessions": asked.sessions,
        "concurrency": asked.concurrency,
        "latency": asked.latency,
        "timeout": asked.timeout,
        "pause": PAUSE,
    }
    with tempfile.TemporaryDirectory() as scratch:
        outcome = judge_under_faults(Path(scratch, "faults"), kills=3, **measures)
        plain = judge_under_faults(Path(scratch, "plain"), kills=0, faults=Faults(), **measures)
    states = Counter(row.status for row in outcome.rows)
    named = Counter((row.session_id, row.judge) for row in outcome.rows)
    share = outcome.repeated / max(outcome.finished, 1)
    same = [row for row in outcome.rows if row.status == "ok"] == plain.rows
    print(f"{outcome.kills} kills, {outcome.received} requests in {outcome.seconds:.0f} s "
          f"(without faults {plain.received} in {plain.seconds:.0f} s)")  # fmt: skip
    print(f"rows {dict(states)}, lost {asked.sessions * JUDGES - len(named)}, "
          f"twice {sum(count > 1 for count in named.values())}")  # fmt: skip
    print(f"finished calls repeated: {outcome.repeated} of {outcome.finished} ({share:.2%})")
    print(f"same rows as without faults: {same}")


if __name__ == "__main__":
    main()
